// The search of the documentation: which words count, and which page goes first.

/** Words that questions have and answers do not. */
const stopWords = new Set("a an and are as at be can do does for from get how i in is it me my of on or our set that the there to up use we what when where which why with you your".split(" "));

/** Other words for the same subject, as people type them. */
const synonyms = {
  cost: ["charge", "price"], costs: ["charge", "price"], spend: ["charge", "budget"], billing: ["charge"], "429": ["rate", "limits"], throttling: ["rate"], quota: ["limits"],
  login: ["sign-in"], signin: ["sign-in"], migrate: ["coming"], switch: ["coming"], k8s: ["kubernetes"], redis: ["valkey"], postgresql: ["postgres"], vision: ["pictures"],
  byok: ["own", "provider"], ha: ["several"], failover: ["fallback"], ollama: ["local"], tracing: ["traces"], image: ["pictures", "image"], images: ["pictures", "images"],
};

/** Names such as `insufficient_balance` and `X-Service-Model` are found whole and by their parts. */
const tokenize = (text) =>
  text.split(/[\s,;:()[\]"'`?!]+/).flatMap((word) => [...new Set([word, ...word.split("."), ...word.split(/[_.\-/]+/)])]).filter(Boolean);

/** Guides explain, references list: a guide goes first where both have the words. */
const rankOf = (id) => (/^\/?(?:docs\/)?api\//.test(id) ? 0.4 : /\/reference\//.test(id) ? 0.8 : 1);

/** Creates the search over the entries of `search.json`; `MiniSearch` is the package's class. */
export function createSearch(MiniSearch, entries) {
  const engine = new MiniSearch({
    fields: ["title", "page", "keywords", "text"],
    storeFields: ["title", "page"],
    tokenize,
    searchOptions: {
      boost: { title: 4, keywords: 6, page: 3 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 ? 0.2 : false),
      boostDocument: rankOf,
    },
  });
  engine.addAll(entries);
  return {
    /** Returns entries with every word first, then those with some of them. */
    search(query) {
      const words = tokenize(query.toLowerCase()).filter((word) => !stopWords.has(word));
      const asked = words.length === 0 ? tokenize(query) : words;
      const wanted = (word) => ({ combineWith: "OR", queries: [word, ...(synonyms[word] ?? [])] });
      const all = engine.search({ combineWith: "AND", queries: asked.map(wanted) });
      const known = new Set(all.map(({ id }) => id));
      const some = all.length < 8 ? engine.search({ combineWith: "OR", queries: asked.map(wanted) }) : [];
      return [...all, ...some.filter(({ id }) => !known.has(id))];
    },
  };
}
