import { html } from "hono/html";
import type { Html } from "./page.ts";

/** Where the script is served. */
export const passkeyScriptPath = "/scripts/passkey.js";

/** A button that the script shows where the browser knows passkeys; hidden without it. */
export const passkeyButton = ({
  way,
  label,
  returnTo,
}: {
  way: "sign-in" | "add";
  label: string;
  returnTo: string;
}): Html =>
  html`<div data-passkey="${way}" data-return-to="${returnTo}" hidden>
<div class="actions"><button type="button" class="plain">${label}</button></div>
<p class="hint" role="status"></p></div>`;

/** Signs in with a passkey, or adds one (Web Authentication Level 3, sections 5.1.8 to 5.1.10). */
export const passkeyScript = `"use strict";
for (const place of document.querySelectorAll("[data-passkey]")) {
  if (typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON !== "function") continue;
  const button = place.querySelector("button");
  const status = place.querySelector("[role=status]");
  const ask = async (method, path, body) => {
    const sent = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch("/api/auth/passkey/" + path, { method, credentials: "same-origin", ...sent });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content?.error?.message ?? "The service refused the passkey.");
    return content;
  };
  const ways = {
    "sign-in": async () => {
      const options = PublicKeyCredential.parseRequestOptionsFromJSON(await ask("GET", "generate-authenticate-options"));
      const credential = await navigator.credentials.get({ publicKey: options });
      await ask("POST", "verify-authentication", { response: credential.toJSON() });
      location.replace(place.dataset.returnTo);
    },
    add: async () => {
      const options = PublicKeyCredential.parseCreationOptionsFromJSON(await ask("GET", "generate-register-options"));
      const credential = await navigator.credentials.create({ publicKey: options });
      await ask("POST", "verify-registration", { response: credential.toJSON() });
      status.textContent = "The passkey is added. Sign in with it the next time.";
    },
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    status.textContent = "";
    try {
      await ways[place.dataset.passkey]();
    } catch (error) {
      status.textContent = error.name === "NotAllowedError" ? "The browser did not use a passkey. Try again." : error.message;
    }
    button.disabled = false;
  });
  place.hidden = false;
}
`;
