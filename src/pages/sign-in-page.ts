import { html } from "hono/html";
import { brand } from "../platform/kernel/brand.ts";
import { formHtml, type FormField } from "./forms.ts";
import { linkButton, notice } from "./message-page.ts";
import type { Html, Page } from "./page.ts";

/** The path of the script. */
export const passkeyScriptPath = "/scripts/passkey.js";

/**
 * Returns a button that the script shows where the browser supports passkeys; hidden without it.
 */
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

/** The options that the sign-in page offers. */
interface SignInPage {
  /** The path and query to return to. */
  returnTo: string;
  fields: readonly FormField[];
  problem?: string | undefined;
  /** The action that just succeeded, such as signing out. */
  done?: string | undefined;
  /** A note about the whole service, such as that it has no owner yet. */
  info?: string | undefined;
  /** The address of the page for new accounts; undefined where they need an invitation. */
  signUpPath: string | undefined;
  providers: readonly { id: string; name: string }[];
  /**
   * The address at which passkeys and providers work, where this page was opened under another one.
   */
  elsewhere: string | undefined;
}

const providerForm = ({ id, name }: { id: string; name: string }, returnTo: string): Html =>
  formHtml({
    action: "/sign-in/provider",
    hidden: { provider: id, return_to: returnTo },
    button: `Sign in with ${name}`,
    plain: true,
  });

/**
 * Returns the other ways to sign in. Passkeys and providers' cookies belong to one host, so under
 * another one there is a link to it.
 */
const otherWays = ({ providers, elsewhere, returnTo }: SignInPage): Html =>
  elsewhere === undefined
    ? html`<div class="stack">${passkeyButton({ way: "sign-in", label: "Sign in with a passkey", returnTo })}${providers.map(
        (each) => providerForm(each, returnTo),
      )}</div>`
    : html`<p class="hint">Passkeys${providers.map(({ name }) => `, ${name}`)} work at <a href="${elsewhere}">${elsewhere}</a></p>`;

/**
 * Returns the page to sign in: with a password and without a script, with a passkey where the
 * browser supports them, or at a provider.
 */
export const signInPage = (page: SignInPage): Page => ({
  title: "Sign in",
  script: passkeyScriptPath,
  body: html`<div class="card"><h1>Sign in</h1>
<p>${brand.productName} is one API in front of many model providers, with keys, budgets and usage for teams.</p>
${page.info === undefined ? "" : notice("info", page.info)}${page.done === undefined ? "" : notice("good", page.done)}${
  page.problem === undefined ? "" : notice("bad", page.problem)
}${formHtml({
  action: "/sign-in",
  fields: page.fields,
  hidden: { return_to: page.returnTo },
  button: "Sign in",
  beside: html`<a href="/forgot-password">Forgot your password?</a>`,
})}${otherWays(page)}</div>
<div class="card">${
    page.signUpPath === undefined
      ? html`<p>New accounts are by invitation. Ask the person who runs this service, or an organisation that uses it.</p>`
      : html`<h2>No account yet?</h2>${linkButton({ href: page.signUpPath, label: "Create an account", plain: true })}`
  }</div>`,
});
