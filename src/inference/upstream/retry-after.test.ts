import { expect, test } from "bun:test";
import { type RetryHint, retryAfterSecondsOf } from "./retry-after.ts";

const date = "Thu, 26 Nov 2026 06:00:00 GMT";
const nowSeconds = Date.parse(date) / 1_000;

test.each<[string, Partial<RetryHint>, number | undefined]>([
  [
    "retry-after-ms before retry-after",
    { headers: { "retry-after-ms": "1500", "retry-after": "9" } },
    2,
  ],
  ["retry-after alone", { headers: { "retry-after": "9" } }, 9],
  ["RetryInfo", { retryDelay: "39.6s" }, 40],
  [
    "a sentence of OpenAI's",
    { message: "Limit reached. Please try again in 1m2.5s. Visit ..." },
    63,
  ],
  ["a sentence in milliseconds", { message: "Please try again in 350ms." }, 1],
  ["a sentence of Azure's", { message: "Please retry after 23 seconds." }, 23],
  ["a sentence of Gemini's", { message: "Quota exceeded. Please retry in 12.34s." }, 13],
  ["a sentence in minutes", { message: "Try again in 2 minutes" }, 120],
  ["a sentence without a delay", { message: "Try again in a moment" }, undefined],
  [
    "the limit that is used up",
    {
      headers: {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "6m0s",
        "x-ratelimit-remaining-tokens": "99",
        "x-ratelimit-reset-tokens": "9h",
      },
    },
    360,
  ],
  [
    "the longest of several limits",
    { headers: { "x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "7.66s" } },
    8,
  ],
  ["a time in seconds", { headers: { date, "x-ratelimit-reset": String(nowSeconds + 30) } }, 30],
  [
    "a time in milliseconds",
    { headers: { date, "x-ratelimit-reset": String((nowSeconds + 30) * 1_000) } },
    30,
  ],
  ["a delay in seconds", { headers: { "x-ratelimit-reset": "17" } }, 17],
  [
    "Anthropic's date",
    {
      headers: {
        date,
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-26T06:00:42Z",
      },
    },
    42,
  ],
  [
    "limits of an answer that was not limited",
    { status: 400, headers: { "x-ratelimit-reset": "17" } },
    undefined,
  ],
  ["a delay beyond a week", { headers: { "retry-after": "999999999" } }, undefined],
  ["nothing", {}, undefined],
])("a provider may be asked again as it says: %s", (_, hint, seconds) => {
  expect(retryAfterSecondsOf({ status: 429, message: null, ...hint })).toBe(seconds);
});
