// The form of an operation's page, which sends the request as the person who is signed in.
// Inference requests carry the person's own playground key, which stays in the memory of this page.
const place = document.getElementById("try");
const trial = JSON.parse(place.dataset.trial);
let heldKey;

/** Creates an element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const fieldFor = (parameter) => {
  const input = element("input", { id: `try-${parameter.name}`, value: parameter.required ? parameter.example : "", autocomplete: "off", spellcheck: false });
  input.required = parameter.required;
  const label = element("label", { htmlFor: input.id }, `${parameter.name}${parameter.required ? "" : " (optional)"}`);
  return { parameter, input, row: element("div", {}, label, input) };
};

const fields = trial.parameters.map(fieldFor);
const body = trial.body === null ? undefined : element("textarea", { id: "try-body", value: JSON.stringify(trial.body, null, 2), spellcheck: false });
const send = element("button", { type: "button", className: "send" }, "Send the request");
const ask = element("div", { className: "confirm", hidden: true });
const status = element("p", { className: "status" });
status.setAttribute("role", "status");
const answer = element("pre", { tabIndex: 0, hidden: true }, element("code"));
answer.setAttribute("aria-label", "Answer");

/** Returns the person's playground key, made on first use. */
async function playgroundKey() {
  if (heldKey !== undefined) return heldKey;
  const response = await fetch("/api/v1/session/playground-key", { method: "POST", headers: workspace() });
  if (!response.ok) throw new Error(await problemOf(response));
  heldKey = (await response.json()).key;
  return heldKey;
}

/** The workspace that this tab of the dashboard shows, if it shows one. */
const workspace = () => {
  const id = sessionStorage.getItem("workspace");
  return id === null ? {} : { "x-service-workspace": id };
};

const problemOf = async (response) => {
  const { error } = await response.json().catch(() => ({}));
  return response.status === 401 ? "Your session has ended. Sign in and send the request again." : (error?.message ?? `Status ${response.status}.`);
};

function address() {
  let path = trial.path;
  const query = new URLSearchParams();
  for (const { parameter, input } of fields) {
    if (parameter.in === "path") {
      // The parameters of a model's id are two, its owner and its name.
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "") query.set(parameter.name, input.value);
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

async function perform() {
  const credential = trial.credential === "key" ? { authorization: `Bearer ${await playgroundKey()}` } : workspace();
  return fetch(address(), {
    method: trial.method,
    credentials: trial.credential === "key" ? "omit" : "same-origin",
    headers: { ...credential, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: body.value }),
  });
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

/** Shows the answer, streams as they come. */
async function show(response, startedMs) {
  const type = response.headers.get("content-type") ?? "";
  const cost = response.headers.get("x-service-credits-charged");
  const line = () => `Status ${response.status}, ${Math.round(performance.now() - startedMs)} ms${cost === null ? "" : `, cost ${cost} USD`}.`;
  const code = answer.firstChild;
  answer.hidden = false;
  if (/^(?:audio|image|video)\/|octet-stream/.test(type)) {
    const bytes = (await response.arrayBuffer()).byteLength;
    code.textContent = `${bytes} bytes of ${type}`;
  } else if (type.startsWith("text/event-stream")) {
    code.textContent = "";
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) code.textContent += part;
  } else code.textContent = pretty(await response.text()) || "The answer has no body.";
  status.textContent = line();
}

async function sendNow() {
  ask.hidden = true;
  const missing = fields.find(({ input }) => input.required && input.value === "");
  if (missing !== undefined) {
    status.textContent = `Fill in ${missing.parameter.name}.`;
    missing.input.focus();
    return;
  }
  send.disabled = true;
  status.textContent = "Waiting for the answer.";
  const startedMs = performance.now();
  try {
    let response = await perform();
    if (response.status === 401 && heldKey !== undefined) {
      // Another tab has made a playground key since, which ended this one.
      heldKey = undefined;
      response = await perform();
    }
    await show(response, startedMs);
  } catch (error) {
    answer.hidden = true;
    status.textContent = error.message;
  } finally {
    send.disabled = false;
  }
}

const yes = element("button", { type: "button", className: "confirmed" }, `Send ${trial.method}`);
const no = element("button", { type: "button" }, "Cancel");
ask.append(element("span", {}, "This request changes your workspace. Send it?"), yes, no);
yes.addEventListener("click", sendNow);
no.addEventListener("click", () => { ask.hidden = true; send.focus(); });
send.addEventListener("click", () => {
  if (!trial.changes) return sendNow();
  ask.hidden = false;
  yes.focus();
});

const who = trial.credential === "key"
  ? "Sends the request with your own playground key. A request to a model that is not free is charged to your workspace."
  : "Sends the request as you, with the session of this browser.";
const rowsOf = (required) => fields.filter(({ parameter }) => parameter.required === required).map(({ row }) => row);
const optional = rowsOf(false);
place.append(
  element("h2", {}, "Try it"),
  element("p", {}, who),
  element("div", { className: "fields" }, ...rowsOf(true)),
  ...(optional.length === 0 ? [] : [element("details", {}, element("summary", {}, `${optional.length} optional parameters`), element("div", { className: "fields" }, ...optional))]),
  ...(body === undefined ? [] : [element("label", { htmlFor: "try-body" }, "Body"), body]),
  send, ask, status, answer,
);
place.hidden = false;
