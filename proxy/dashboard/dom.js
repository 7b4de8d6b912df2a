// Makes elements. Text goes in as text only: nothing here, or anywhere on this page, parses markup.

export const byId = (id) => document.getElementById(id);

// element("p", { class: "x", hidden: true }, "text", child, …)
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Leaves the text alone when it is the same, so that a screen reader is not told again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
