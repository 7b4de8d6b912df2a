// Talks to the admin side. The token is kept for this tab only and sent as a header, never as a
// cookie: cookies of 127.0.0.1 go to every port of the machine.

const SLOT = "sluice.token";

export class ApiError extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status; // 0: nobody answered
  }
}

// A link may carry the token behind its #, which browsers send to nobody.
export function takeTokenFromAddress() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return;
  setToken(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname);
}
export const hasToken = () => sessionStorage.getItem(SLOT) !== null;
export const setToken = (token) => sessionStorage.setItem(SLOT, token);
export const forgetToken = () => sessionStorage.removeItem(SLOT);

const authorized = (more = {}) => ({ Authorization: `Bearer ${sessionStorage.getItem(SLOT) ?? ""}`, ...more });

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "omit", ...options });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ApiError(0, "Sluice does not answer");
  }
  if (response.ok) return response;
  let sentence = `Sluice answered with status ${response.status}`;
  try {
    sentence = (await response.json()).error ?? sentence;
  } catch {
    // The status alone has to do.
  }
  throw new ApiError(response.status, sentence);
}

export async function read(path, signal) {
  return (await ask(path, { headers: authorized(), signal })).json();
}

// Gives the sentence about what was done.
export async function order(path, body = {}) {
  const headers = authorized({ "Content-Type": "application/json" });
  return (await (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json()).done;
}

export const keyPath = (key, verb) => `/api/keys/${encodeURIComponent(key)}${verb ? `/${verb}` : ""}`;

// Calls onEvent for each event behind `after` until the stream ends or is aborted; then throws.
export async function follow(after, signal, onOpen, onEvent) {
  const headers = authorized({ Accept: "text/event-stream" });
  const response = await ask(`/api/events?after=${after}`, { headers, signal });
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new ApiError(0, "Sluice ended the connection");
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length > 0) onEvent(JSON.parse(data.map((line) => line.slice(6)).join("\n")));
    }
  }
}
