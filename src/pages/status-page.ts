import { html } from "hono/html";
import { brand } from "../platform/kernel/brand.ts";
import { countText } from "../platform/kernel/count-text.ts";
import { notice, type NoticeKind } from "./message-page.ts";
import type { Html, Page } from "./page.ts";

/**
 * The content of the status page: one sentence, components, the days of each provider, and
 * incidents.
 */
export interface StatusFacts {
  status: string;
  description: string;
  checkedAt: string;
  components: readonly { name: string; status: string; description: string }[];
  providers: readonly {
    name: string;
    uptime: number | null;
    buckets: readonly { date: string; attempts: number; uptime: number | null }[];
  }[];
  incidents: readonly StatusIncident[];
  notices: readonly StatusNotice[];
}

/** An incident that operators describe. Times are ISO 8601, and the newest update is first. */
interface StatusNotice {
  id: string;
  title: string;
  state: string;
  started_at: string;
  resolved_at: string | null;
  updates: readonly { at: string; state: string; text: string }[];
}

/**
 * A period in which a provider was not healthy. Times are ISO 8601, and the end is null while it
 * lasts.
 */
interface StatusIncident {
  upstream_id: string;
  /** The provider's name. */
  name: string;
  status: string;
  started_at: string;
  ended_at: string | null;
  messages: readonly string[];
}

/** The address of the feed of incidents. */
export const statusFeedPath = "/status.atom";

const kinds: Readonly<Record<string, NoticeKind>> = {
  healthy: "good",
  degraded: "warning",
  partial: "warning",
  down: "bad",
};
const percent = (uptime: number | null): string =>
  uptime === null ? "no request" : `${(uptime * 100).toFixed(2)} %`;
const minute = (iso: string): string => `${iso.slice(0, 16).replace("T", " ")} UTC`;

/** Returns a state as a person reads it: `no_signal` is "No signal". */
const wordsOf = (status: string): string =>
  `${status.charAt(0).toUpperCase()}${status.slice(1).replaceAll("_", " ")}`;

/** The uptime from which a day is good, and the one from which it is fair; below, it is bad. */
const [goodFrom, fairFrom] = [0.99, 0.9] as const;
function barOf(uptime: number | null): string {
  if (uptime === null) return "idle";
  return uptime >= goodFrom ? "good" : uptime >= fairFrom ? "fair" : "bad";
}

const barsOf = ({ name, buckets }: StatusFacts["providers"][number]): Html =>
  html`<svg class="days" viewBox="0 0 ${buckets.length * 4} 24" preserveAspectRatio="none" role="img" aria-label="${name}, day by day">${buckets.map(
    ({ date, attempts, uptime }, index) =>
      html`<rect class="${barOf(uptime)}" x="${index * 4}" width="3" height="24">
<title>${date}: ${percent(uptime)}, ${countText(attempts, "attempt")}</title></rect>`,
  )}</svg>`;

const incidentHtml = ({
  name,
  status,
  started_at: from,
  ended_at: to,
  messages,
}: StatusIncident): Html =>
  html`<li><strong>${name} was ${status}</strong>, from ${minute(from)} ${to === null ? "until now" : `to ${minute(to)}`}.${messages.map(
    (message) => html` ${message}`,
  )}</li>`;

const noticeHtml = ({ title, state, started_at: from, updates }: StatusNotice): Html =>
  html`<h3>${title}</h3><p>${wordsOf(state)}, since ${minute(from)}.</p><ul>${updates.map(
    (update) =>
      html`<li><strong>${wordsOf(update.state)}</strong>, ${minute(update.at)}: ${update.text}</li>`,
  )}</ul>`;

/** Returns the incidents that operators describe, those that last before the components. */
const noticesHtml = (notices: StatusFacts["notices"]): Html =>
  notices.length === 0
    ? html``
    : html`<div class="card"><h2>From the operators</h2>${notices.map(noticeHtml)}</div>`;

const providersHtml = (providers: StatusFacts["providers"]): Html =>
  providers.length === 0
    ? html`<p>No provider has been called yet.</p>`
    : html`<p>A bar a day: green where at least 99 % of the attempts were answered, yellow from 90 %, red below, grey without a request.</p>
${providers.map((provider) => html`<h3>${provider.name}: ${percent(provider.uptime)}</h3>${barsOf(provider)}`)}`;

const incidentsHtml = (incidents: StatusFacts["incidents"]): Html =>
  incidents.length === 0
    ? html`<p>None in the last 90 days.</p>`
    : html`<ul>${incidents.map(incidentHtml)}</ul>`;

/** Returns the public status page. */
export const statusPage = ({
  status,
  description,
  checkedAt,
  components,
  providers,
  incidents,
  notices,
}: StatusFacts): Page => ({
  title: "Status",
  width: "wide",
  feed: statusFeedPath,
  body: html`<div class="card"><h1>Status</h1>${notice(kinds[status] === "bad" ? "warning" : (kinds[status] ?? "info"), description)}
<p>Seen at ${minute(checkedAt)}. <a href="${statusFeedPath}">Feed of incidents</a>, <a href="/catalog">models</a>.</p></div>
${noticesHtml(notices.filter(({ resolved_at: end }) => end === null))}
<div class="card"><h2>Components</h2><dl>${components.map(
    (each) => html`<dt>${each.name}</dt><dd>${wordsOf(each.status)}. ${each.description}</dd>`,
  )}</dl></div>
<div class="card"><h2>Providers, last 90 days</h2>${providersHtml(providers)}</div>
<div class="card"><h2>Incidents</h2>${incidentsHtml(incidents)}</div>
${noticesHtml(notices.filter(({ resolved_at: end }) => end !== null))}`,
});

/**
 * Returns the incidents as an Atom feed (RFC 4287); an entry's id stays the same while its incident
 * lasts.
 */
export function statusFeed(
  { incidents, notices, checkedAt }: Pick<StatusFacts, "incidents" | "notices" | "checkedAt">,
  publicUrl: string,
): string {
  const described = notices.map(
    ({ id, title, started_at: from, updates }) => html`<entry>
<id>${publicUrl}/status#${id}</id><title>${title}</title><updated>${updates[0]?.at ?? from}</updated>
<link href="${publicUrl}/status"/>
<summary>${updates.map(({ at, state, text }) => `${minute(at)}, ${wordsOf(state)}: ${text}`).join(" ")}</summary></entry>
`,
  );
  const entries = incidents.map(
    ({ upstream_id: id, name, status, started_at: from, ended_at: to, messages }) => html`<entry>
<id>${publicUrl}/status#${encodeURIComponent(id)}-${Date.parse(from)}</id>
<title>${name} was ${status}</title><updated>${to ?? from}</updated>
<link href="${publicUrl}/status"/>
<summary>${`From ${minute(from)} ${to === null ? "until now" : `to ${minute(to)}`}. ${messages.join(" ")}`}</summary></entry>
`,
  );
  const updates = [
    ...notices.map((each) => each.updates[0]?.at ?? each.started_at),
    ...incidents.map((each) => each.ended_at ?? each.started_at),
  ];
  const feed = html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>${publicUrl}/status</id><title>${brand.productName}: incidents</title>
<updated>${updates.sort().at(-1) ?? checkedAt}</updated><link rel="self" href="${publicUrl}${statusFeedPath}"/>
<author><name>${brand.productName}</name></author>
${described}${entries}</feed>
`;
  if (feed instanceof Promise) throw new TypeError("a feed holds no promise");
  return feed.toString();
}
