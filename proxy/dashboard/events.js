// The feed of events, newest first, as they happen.
import { byId, element, setText } from "/dom.js";
import { ago, clock } from "/words.js";

const SHOWN = 100;

export class Events {
  constructor() {
    this.node = byId("events");
    this.last = 0;
    this.showEmpty();
    setInterval(() => this.age(), 5000);
  }

  showEmpty() {
    if (!this.node.firstChild) this.node.append(element("li", { class: "none", id: "no-events" }, element("span"), "Nothing has happened yet."));
  }

  // Takes in the latest events of a server. One whose numbers are behind ours has begun anew.
  catchUp({ last, events }) {
    if (last < this.last) {
      this.node.replaceChildren();
      this.last = 0;
      this.showEmpty();
    }
    for (const event of events) this.add(event, false);
    this.last = Math.max(this.last, last);
  }

  add(event, fresh) {
    if (event.sequence <= this.last) return false;
    this.last = event.sequence;
    byId("no-events")?.remove();
    const time = element("time", { datetime: event.at, title: clock(event.at) }, ago(event.at));
    this.node.prepend(element("li", { class: fresh ? "new" : "" },
      element("span", { class: `mark ${/^[a-z]+$/.test(event.kind) ? event.kind : ""}`, title: event.kind }),
      element("div", {}, element("p", {}, event.text), time)));
    while (this.node.children.length > SHOWN) this.node.lastChild.remove();
    if (fresh) setText(byId("announce"), event.text);
    return true;
  }

  age() {
    for (const time of this.node.querySelectorAll("time")) setText(time, ago(time.dateTime));
  }
}
