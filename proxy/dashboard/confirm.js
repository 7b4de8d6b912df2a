// Asks before anything is done, and shows when it could not be.
import { byId, element } from "/dom.js";

const dialog = byId("confirm");
let current = null;

// `act(values)` does it; the dialog stays, with the sentence, when that fails.
export function confirm({ title, text, yes, danger = false, fields = [], act }) {
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-error").textContent = "";
  const button = byId("confirm-yes");
  button.textContent = yes;
  button.className = danger ? "danger solid" : "primary";
  button.disabled = false;
  byId("confirm-fields").replaceChildren(...fields.map(({ label, control }) => element("label", {}, label, control)));
  current = { act, fields };
  dialog.showModal();
  (fields[0]?.control ?? byId("confirm-no")).focus();
}

byId("confirm-no").addEventListener("click", () => dialog.close());
byId("confirm-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = byId("confirm-yes");
  button.disabled = true;
  try {
    await current.act(Object.fromEntries(current.fields.map(({ name, control }) => [name, control.value])));
    dialog.close();
  } catch (problem) {
    byId("confirm-error").textContent = problem.message;
  } finally {
    button.disabled = false;
  }
});
