import { runLifetimeMsMax } from "../../identity/keys/run.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromUsd } from "../../platform/kernel/money.ts";
import type { NewRun } from "./run-editor.ts";

const nameLengthMax = 100;

const wrong = (problem: string): GatewayError =>
  new GatewayError(
    "bad_request",
    `X-Service-Run: ${problem}, as in \`nightly-tests; limit=0.05\`.`,
    {
      param: "X-Service-Run",
    },
  );

/** Returns a parameter as a number above 0. Throws `bad_request`. */
function positive(name: string, text: string, isInteger: boolean): number {
  const value = Number(text);
  const isNumber = isInteger ? Number.isSafeInteger(value) : Number.isFinite(value);
  if (isNumber && value > 0) return value;
  throw wrong(`${name} must be a number above 0`);
}

/** Returns the milliseconds of a lifetime in seconds. Throws `bad_request`. */
function lifetimeMs(name: string, text: string): number {
  const ms = positive(name, text, true) * 1000;
  if (ms <= runLifetimeMsMax) return ms;
  throw wrong(`${name} must be at most ${runLifetimeMsMax / 1000}`);
}

/**
 * Parses the run that a request names: its name, and the bounds with which it is opened where there
 * is none. Throws `bad_request`.
 *
 * @example joinedRun("nightly; limit=0.05; max_requests=20")
 */
export function joinedRun(text: string): NewRun {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim());
  if (name === "" || name.length > nameLengthMax || /[^\x20-\x7e]/.test(name))
    throw wrong(`the name must have 1 to ${nameLengthMax} printable characters`);
  const wanted: NewRun = {
    name,
    limitNano: undefined,
    maxRequests: null,
    maxDepth: undefined,
    expiresInMs: undefined,
  };
  for (const parameter of parameters) {
    if (parameter === "") continue;
    const [key = "", value = ""] = parameter.split("=").map((part) => part.trim());
    if (key === "limit") {
      positive(key, value, false);
      wanted.limitNano = nanoFromUsd(value);
    } else if (key === "max_requests") wanted.maxRequests = positive(key, value, true);
    else if (key === "expires_in") wanted.expiresInMs = lifetimeMs(key, value);
    else throw wrong(`there is no parameter ${key}; it takes limit, max_requests and expires_in`);
  }
  return wanted;
}
