/** A page of the site. */
export interface PageEntry {
  /** Its address below the section, and its file without `.md`. */
  slug: string;
  title: string;
}

/** One of the four kinds of documentation. */
export interface Section {
  slug: string;
  title: string;
  pages: readonly PageEntry[];
}

/** Every hand-written page, in the order of the navigation. */
export const writtenSections: readonly Section[] = [
  {
    slug: "start",
    title: "Start",
    pages: [
      { slug: "quickstart", title: "Quickstart" },
      { slug: "for-developers", title: "For developers" },
      { slug: "for-teams", title: "For teams" },
      { slug: "for-operators", title: "For operators" },
    ],
  },
  {
    slug: "guides",
    title: "Guides",
    pages: [
      { slug: "openai-sdk", title: "OpenAI SDK" },
      { slug: "anthropic-sdk", title: "Anthropic SDK" },
      { slug: "ai-sdk", title: "AI SDK" },
      { slug: "langchain", title: "LangChain" },
      { slug: "pydantic-ai", title: "pydantic-ai" },
      { slug: "openai-agents", title: "OpenAI Agents SDK" },
      { slug: "claude-code", title: "Claude Code" },
      { slug: "codex", title: "Codex" },
      { slug: "opencode", title: "opencode" },
      { slug: "aider", title: "aider" },
      { slug: "editors", title: "Cursor and VS Code" },
      { slug: "mcp", title: "Tools for agents (MCP)" },
      { slug: "other-surfaces", title: "Embeddings, rerank and more" },
      { slug: "documents", title: "Pictures and documents" },
      { slug: "team-keys", title: "Keys and caps for a team" },
      { slug: "budgets", title: "Budgets" },
      { slug: "own-provider-keys", title: "Own provider keys" },
      { slug: "presets", title: "Presets" },
      { slug: "routing", title: "Routing recipes" },
      { slug: "local-models", title: "Local models" },
      { slug: "charges", title: "Reading a charge" },
      { slug: "app-keys", title: "Give an app a key" },
      { slug: "privacy", title: "Privacy and zero retention" },
      { slug: "card-payments", title: "Card payments" },
      { slug: "command", title: "The command switchyard" },
      { slug: "from-litellm", title: "Coming from LiteLLM" },
      { slug: "from-portkey", title: "Coming from Portkey" },
      { slug: "from-openrouter", title: "Coming from OpenRouter" },
      { slug: "from-openai", title: "Coming from a provider's API" },
    ],
  },
  {
    slug: "operate",
    title: "Operate",
    pages: [
      { slug: "install", title: "Install and upgrade" },
      { slug: "providers", title: "Providers" },
      { slug: "backup", title: "Backup and restore" },
      { slug: "several-gateways", title: "Several gateways" },
      { slug: "archive", title: "The archive" },
      { slug: "network", title: "Proxies and certificates" },
      { slug: "observability", title: "Observability" },
      { slug: "outages", title: "Stops and outages" },
      { slug: "failure-modes", title: "Failure modes" },
      { slug: "security", title: "Security" },
      { slug: "capacity", title: "Capacity" },
    ],
  },
];
