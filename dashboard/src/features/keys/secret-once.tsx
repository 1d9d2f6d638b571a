import { useState } from "react";
import { Code, Field, Select } from "../../ui/parts.tsx";

const clients = [
  ["curl", "curl"],
  ["openai", "OpenAI SDK (TypeScript)"],
  ["python", "OpenAI SDK (Python)"],
  ["anthropic", "Anthropic SDK (TypeScript)"],
  ["ai-sdk", "AI SDK"],
  ["claude", "Claude Code"],
  ["codex", "Codex"],
] as const;

/** What to paste where, by client, as the README has it. */
function snippetFor(client: string, secret: string): string {
  const { origin } = location;
  if (client === "openai")
    return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${origin}/api/v1", apiKey: "${secret}" });`;
  if (client === "python")
    return `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/api/v1", api_key="${secret}")`;
  if (client === "anthropic") {
    return `import Anthropic from "@anthropic-ai/sdk";\n\nconst client = new Anthropic({ baseURL: "${origin}", authToken: "${secret}", apiKey: null });`;
  }
  if (client === "ai-sdk") {
    return `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";\n\nconst provider = createOpenAICompatible({ name: "switchyard", baseURL: "${origin}/api/v1", apiKey: "${secret}" });`;
  }
  if (client === "claude")
    return `export ANTHROPIC_BASE_URL=${origin}\nexport ANTHROPIC_AUTH_TOKEN=${secret}\nclaude`;
  if (client === "codex") {
    return `# ~/.codex/config.toml\nmodel_provider = "switchyard"\n[model_providers.switchyard]\nname = "Switchyard"\nbase_url = "${origin}/v1"\nenv_key = "SWITCHYARD_KEY"\nwire_api = "responses"\n\n# shell\nexport SWITCHYARD_KEY=${secret}\ncodex`;
  }
  return `curl ${origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer ${secret}" -H "Content-Type: application/json" \\\n  -d '{"model":"service/auto","messages":[{"role":"user","content":"Hello"}]}'`;
}

/** A secret that is shown this once, with what to paste where. */
export function SecretOnce({ secret }: { secret: string }) {
  const [client, setClient] = useState<string>("curl");
  return (
    <>
      <p>Copy the key now. It is not shown again; a lost key is rotated.</p>
      <Code text={secret} label="Copy key" />
      <Field label="Use it with">
        {(id) => <Select id={id} value={client} options={clients} onChange={setClient} />}
      </Field>
      <Code text={snippetFor(client, secret)} />
    </>
  );
}
