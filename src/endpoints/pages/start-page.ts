import { html } from "hono/html";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type Html, type Page, faviconSvg } from "../../pages/page.ts";
import { linkButton } from "../../pages/message-page.ts";
import { passkeyButton, passkeyScriptPath } from "../../pages/sign-in-page.ts";
import type { Dependencies } from "../dependencies.ts";
import { runningResponse } from "../ollama/door.ts";
import { pageResponse, pageRoute, personOf, redirect } from "./page-response.ts";

/** A next step, and where it is described. */
interface Step {
  title: string;
  text: string;
  code?: string;
}

const firstRequest = (publicUrl: string, model: string, key: string): Step => ({
  title: "Send a request",
  text: key,
  code:
    `curl ${publicUrl}/api/v1/chat/completions -H "Authorization: Bearer $SWITCHYARD_KEY" ` +
    `-H "Content-Type: application/json" -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
});

const operatorSteps: readonly Step[] = [
  {
    title: "Connect a model provider",
    text: "Start the service with the provider's key in its environment. Until then the sandbox answers with simulated models.",
    code: "OPENAI_API_KEY=... npm start",
  },
  {
    title: "Invite the people you work with",
    text: "Create an organisation with POST /organizations, then invite with POST /organizations/{id}/invitations. Each answer has a link.",
  },
];

const memberSteps: readonly Step[] = [
  {
    title: "Connect an app or a device",
    text: "Start it, then enter the code that it shows, or give it a key on the page that it opens.",
  },
  {
    title: "Bring your own provider key",
    text: "Requests that your own key serves cost no credits. Add a key with POST /auth/byok.",
  },
];

function stepsOf(
  { user: { operator } }: SessionCaller,
  publicUrl: string,
  model: string,
): readonly Step[] {
  return operator
    ? [
        firstRequest(publicUrl, model, "Use the key that the terminal showed at the first start."),
        ...operatorSteps,
      ]
    : [
        firstRequest(
          publicUrl,
          model,
          "Use a key of your workspace, with curl or an OpenAI or Anthropic SDK.",
        ),
        ...memberSteps,
      ];
}

const stepHtml = ({ title, text, code }: Step): Html =>
  html`<li><h2>${title}</h2><p>${text}</p>${code === undefined ? "" : html`<code class="code">${code}</code>`}</li>`;

const startOf = (person: SessionCaller, steps: readonly Step[]): Page => ({
  title: "Start",
  width: "wide",
  script: passkeyScriptPath,
  body: html`<div class="card"><h1>Welcome, ${person.user.name}</h1>
<p>You are signed in as ${person.user.email}, in the workspace ${person.workspace.name}.</p>
<ol class="steps">${steps.map(stepHtml)}</ol>
<div class="actions">${linkButton({ href: "/docs", label: "Read the documentation" })}${linkButton({
    href: "/device",
    label: "Connect a device",
    plain: true,
  })}${linkButton({ href: "/sign-out", label: "Sign out", plain: true })}</div>
${passkeyButton({ way: "add", label: "Add a passkey", returnTo: "/" })}</div>`,
});

const htmlType = "text/html; charset=utf-8";

/**
 * Shows the dashboard, or where that is off the next steps, to signed-in people; others sign in
 * first.
 */
export const startPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/",
  summary: "Show the start page.",
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "people" | "dashboard" | "clock" | "publicUrl" | "exampleModel" | "hasOllamaDoor"
    >,
  ) {
    // Claude Code checks its base URL with HEAD before the first request, follows no redirect, and
    // wants 200 or 404 (2.1.329 asks /api/hello, earlier versions the base URL itself).
    if (context.request.method === "HEAD")
      return new Response(null, { headers: { ...context.headers, "content-type": htmlType } });
    // Programs look for Ollama at its address alone; browsers ask for pages.
    const asksForPage = context.request.headers.get("accept")?.includes("text/html") === true;
    if (deps.hasOllamaDoor && !asksForPage) return runningResponse(context);
    const person = await personOf(context, deps);
    if (person === undefined) return redirect(context, "/sign-in");
    if (deps.dashboard.isOn) return redirect(context, "/dashboard");
    return pageResponse(
      context,
      startOf(person, stepsOf(person, deps.publicUrl(), deps.exampleModel())),
    );
  },
});

/** The icon that browsers show in tabs. */
export const favicon = defineEndpoint({
  ...pageRoute,
  otherResponseTypes: ["image/svg+xml"],
  method: "GET",
  path: "/favicon.svg",
  counting: "none",
  summary: "Show the logo of the service.",
  handle: (context) =>
    new Response(faviconSvg, {
      headers: {
        ...context.headers,
        "content-type": "image/svg+xml",
        "cache-control": "public, max-age=86400",
        "x-content-type-options": "nosniff",
      },
    }),
});
