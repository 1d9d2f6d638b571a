import { sessionOf } from "../plan/plan-call.ts";
import { chatDialectOf } from "../adapt.ts";
import type { Execution } from "../execution.ts";
import type { Adapter } from "../inference-call.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { isAtPlace } from "../../routing/sticky-sessions.ts";
import type { AttemptFailure } from "../../upstream/upstream-failure.ts";
import type { RequestFile } from "../../dialects/file-parts.ts";
import { platformAccount, type ProviderFiles } from "./provider-files.ts";
import { ReferredRequest } from "./referred-request.ts";

/** A request that names files which its provider stores. */
interface NamedFiles {
  adapter: Adapter;
  /** Returns whether the provider refuses the request because of a file. */
  isRefused(failure: AttemptFailure): boolean;
  /** Forgets the copies, since the provider does not know them. */
  forget(): Promise<void>;
}

/** What came of sending a request, as far as it is read here. */
type SentRequest = { ok: true } | { ok: false; failure: AttemptFailure };

/**
 * Sends a request whose files the provider may store already. Where it does not know one of them any
 * more, the request is sent again with all contents.
 */
export async function sendWithFiles<Sent extends SentRequest>(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
  send: (adapter: Adapter) => Promise<Sent>,
): Promise<Sent> {
  const named = await nameFiles(execution, { candidate, adapter });
  if (named !== undefined) {
    const sent = await send(named.adapter);
    if (sent.ok || !named.isRefused(sent.failure) || execution.abortScope.clientGone) return sent;
    await named.forget();
  }
  return send(adapter);
}

/**
 * Returns the request with the provider's names of its files in place of their contents; undefined
 * where all contents are sent. Never rejects: what fails is sent inline.
 */
async function nameFiles(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Promise<NamedFiles | undefined> {
  const {
    deps: { providerFiles },
    call,
  } = execution;
  const files = providerFiles?.worthNaming(call.files ?? []) ?? [];
  const api = files.length === 0 ? undefined : providerFiles?.apiOf(candidate.route.provider);
  if (providerFiles === undefined || api === undefined || call.leg !== undefined) return undefined;
  if (retainsNothing(execution) || candidate.credential?.source === "pool") return undefined;
  try {
    const text = adapter.requestParts?.join("") ?? adapter.requestText;
    const request = ReferredRequest.read(text, { files, dialect: chatDialectOf(candidate.route) });
    const target = {
      provider: candidate.route.provider,
      account: candidate.credential?.key.id ?? platformAccount,
      workspaceId: call.caller.workspace.id,
      isSettled: isSettled(execution, candidate),
    };
    const bytesOfAll = files.reduce((sum, { bytes }) => sum + bytes, 0);
    const names = new Map<RequestFile, string>();
    const copyIds: string[] = [];
    for (const file of request.files) {
      const named = await providerFiles.nameOf(file, { target, api, bytesOfAll });
      if (named === undefined) continue;
      names.set(file, named.name);
      copyIds.push(named.copyId);
    }
    if (names.size === 0) return undefined;
    return {
      adapter: withNames(adapter, { text: request.write(names), headers: api.headers }),
      isRefused: (failure) => isAboutFile(failure, [...names.values()]),
      forget: () => forgetAll(providerFiles, copyIds),
    };
  } catch (error) {
    providerFiles.failed(error);
    return undefined;
  }
}

async function forgetAll(files: ProviderFiles, copyIds: readonly string[]): Promise<void> {
  for (const copyId of copyIds) await files.forget(copyId);
}

/** Returns the adapter with another text, and with the headers that the names need. */
function withNames(
  adapter: Adapter,
  { text, headers }: { text: string; headers: Readonly<Record<string, string>> },
): Adapter {
  const requestHeaders: Record<string, string> = { ...adapter.requestHeaders };
  for (const [name, value] of Object.entries(headers)) {
    const features = (requestHeaders[name] ?? "").split(",").map((each) => each.trim());
    requestHeaders[name] = [...new Set([...features.filter(Boolean), value])].join(",");
  }
  return { ...adapter, requestText: text, requestParts: undefined, requestHeaders };
}

/** Returns whether a request must leave nothing at its provider. */
function retainsNothing({ deps, call }: Execution): boolean {
  const { zdr, data_collection: collection } = Object(call.body["provider"]) as {
    zdr?: unknown;
    data_collection?: unknown;
  };
  return zdr === true || collection === "deny" || deps.privacyOf(call.caller).zdr;
}

/**
 * Returns whether the next request of the conversation is likely to go to this candidate: it comes
 * first and no other provider may serve, or its session is served there.
 */
function isSettled(execution: Execution, candidate: Candidate): boolean {
  const { deps, call, candidates, requestedModel } = execution;
  const { id } = candidate.route.provider;
  const isFirst = candidates[0]?.credential?.key.id === candidate.credential?.key.id;
  if (isFirst && candidates.every(({ route }) => route.provider.id === id)) return true;
  const session = sessionOf(call);
  const place = session && deps.sessions.lastPlace(session, requestedModel);
  return place !== undefined && isAtPlace(candidate, place);
}

/** The statuses with which vendors refuse a file that they do not know. */
const fileStatuses: ReadonlySet<number | null> = new Set([400, 403, 404, 410, 413, 415, 422]);

function isAboutFile(
  { upstreamStatus, upstreamMessage, upstreamCode, upstreamError }: AttemptFailure,
  names: readonly string[],
): boolean {
  if (!fileStatuses.has(upstreamStatus)) return false;
  const { param, type } = upstreamError ?? {};
  const words = [upstreamMessage, upstreamCode, param, type].join(" ");
  return /file/i.test(words) || names.some((name) => words.includes(name));
}
