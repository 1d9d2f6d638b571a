import { z } from "zod";
import type { ConfiguredSearch } from "../../platform/config/search-settings.ts";

/** A page that a search found. */
export interface FoundPage {
  title: string;
  url: string;
  /** A part of its text. */
  text: string;
  /** When it was published, as the search provider writes it; absent where that is not known. */
  age?: string | undefined;
}

/** The most characters of a page's text that are passed on. */
const textCharactersMax = 1_500;

const text = z.string().nullish();

/** A request of a search, and how its answer is read. */
interface SearchForm {
  defaultUrl: string | undefined;
  request(
    settings: ConfiguredSearch & { url: string },
    query: string,
  ): [url: string, init: RequestInit];
  pages(answer: unknown): FoundPage[];
}

const page = (
  url: string,
  { title, content, age }: { title?: unknown; content?: unknown; age?: unknown },
): FoundPage => ({
  title: typeof title === "string" && title !== "" ? title : url,
  url,
  text: typeof content === "string" ? content.slice(0, textCharactersMax) : "",
  ...(typeof age === "string" && { age }),
});

const postJson = (headers: Record<string, string>, body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

const resultsOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.looseObject({ results: z.array(z.looseObject({ url: z.string(), ...shape })) });

const searxngAnswer = resultsOf({ title: text, content: text, publishedDate: text });
const tavilyAnswer = resultsOf({ title: text, content: text, published_date: text });
const exaAnswer = resultsOf({ title: text, text, publishedDate: text });
const braveAnswer = z.looseObject({
  web: z
    .looseObject({
      results: z.array(
        z.looseObject({ url: z.string(), title: text, description: text, age: text }),
      ),
    })
    .nullish(),
});

/** The search providers, by their names in the configuration. */
const forms: Readonly<Record<ConfiguredSearch["provider"], SearchForm>> = {
  // https://docs.searxng.org/dev/search_api.html
  searxng: {
    defaultUrl: undefined,
    request: ({ url }, query) => [
      `${url}/search?${new URLSearchParams({ q: query, format: "json" })}`,
      { headers: { accept: "application/json" } },
    ],
    pages: (answer) =>
      searxngAnswer
        .parse(answer)
        .results.map(({ url, publishedDate: age, ...rest }) => page(url, { ...rest, age })),
  },
  // https://api-dashboard.search.brave.com/app/documentation/web-search
  brave: {
    defaultUrl: "https://api.search.brave.com/res/v1",
    request: ({ url, apiKey, results }, query) => [
      `${url}/web/search?${new URLSearchParams({ q: query, count: String(results) })}`,
      { headers: { accept: "application/json", "x-subscription-token": apiKey ?? "" } },
    ],
    pages: (answer) =>
      (braveAnswer.parse(answer).web?.results ?? []).map(({ url, description, ...rest }) =>
        page(url, { ...rest, content: description }),
      ),
  },
  // https://docs.tavily.com/documentation/api-reference/endpoint/search
  tavily: {
    defaultUrl: "https://api.tavily.com",
    request: ({ url, apiKey, results }, query) => [
      `${url}/search`,
      postJson({ authorization: `Bearer ${apiKey ?? ""}` }, { query, max_results: results }),
    ],
    pages: (answer) =>
      tavilyAnswer
        .parse(answer)
        .results.map(({ url, published_date: age, ...rest }) => page(url, { ...rest, age })),
  },
  // https://docs.exa.ai/reference/search
  exa: {
    defaultUrl: "https://api.exa.ai",
    request: ({ url, apiKey, results }, query) => [
      `${url}/search`,
      postJson(
        { "x-api-key": apiKey ?? "" },
        { query, numResults: results, contents: { text: { maxCharacters: textCharactersMax } } },
      ),
    ],
    pages: (answer) =>
      exaAnswer
        .parse(answer)
        .results.map(({ url, text: content, publishedDate: age, ...rest }) =>
          page(url, { ...rest, content, age }),
        ),
  },
};

/** Thrown with the reason why a search has no answer. It quotes nothing that the provider sent. */
class SearchFailure extends Error {}

/** Searches the web through the configured provider. Throws `SearchFailure`. */
export async function searchWeb(
  settings: ConfiguredSearch,
  { query, signal }: { query: string; signal: AbortSignal },
): Promise<FoundPage[]> {
  const form = forms[settings.provider];
  const url = (settings.url ?? form.defaultUrl ?? "").replace(/\/$/, "");
  const [address, init] = form.request({ ...settings, url }, query);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(settings.timeoutMs)]);
  let response: Response;
  try {
    response = await fetch(address, { ...init, redirect: "manual", signal: deadline });
  } catch {
    throw new SearchFailure(
      deadline.aborted ? "The search took too long." : "The search provider cannot be reached.",
    );
  }
  if (!response.ok) throw new SearchFailure(`The search provider answered ${response.status}.`);
  try {
    return form.pages(await response.json()).slice(0, settings.results);
  } catch {
    throw new SearchFailure("The search provider's answer has another form than expected.");
  }
}
