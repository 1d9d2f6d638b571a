import { useState } from "react";
import { Code, Select } from "../../ui/parts.tsx";

const clients = [["curl", "curl"], ["openai", "OpenAI SDK (TypeScript)"], ["python", "OpenAI SDK (Python)"], ["claude", "Claude Code"], ["codex", "Codex"]] as const;

function snippetFor(client: string, secret: string): string {
  const { origin } = location;
  if (client === "openai") return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${origin}/api/v1", apiKey: "${secret}" });`;
  if (client === "python") return `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/api/v1", api_key="${secret}")`;
  if (client === "claude") return `export ANTHROPIC_BASE_URL=${origin}\nexport ANTHROPIC_AUTH_TOKEN=${secret}\nclaude`;
  if (client === "codex") return `export OPENAI_BASE_URL=${origin}/v1\nexport OPENAI_API_KEY=${secret}\ncodex`;
  return `curl ${origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer ${secret}" -H "Content-Type: application/json" \\\n  -d '{"model":"service/auto","messages":[{"role":"user","content":"Hello"}]}'`;
}

/** A secret that is shown this once, with what to paste where. */
export function SecretOnce({ secret }: { secret: string }) {
  const [client, setClient] = useState<string>("curl");
  return (
    <>
      <p>Copy the key now. It is not shown again; a lost key is rotated.</p>
      <Code text={secret} />
      <Select label="Client" value={client} options={clients} onChange={setClient} />
      <Code text={snippetFor(client, secret)} />
    </>
  );
}
