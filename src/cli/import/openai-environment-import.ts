import { providerDefinitions } from "../../inference/providers/index.ts";
import { type ImportPlan, vendorAt, withoutPrice } from "./import-plan.ts";
import { hostName, usableAddress } from "./server-address.ts";
import type { SourceDocument } from "./source-document.ts";
import type { SourceNode } from "./source-node.ts";

const openaiAddress = "https://api.openai.com/v1";

/** Reads the variables of programs that call providers directly. */
export class OpenAiEnvironmentImport {
  constructor(private readonly plan: ImportPlan) {}

  /**
   * Fills the plan. Values from a file go to switchyard.env; those of the environment stay where
   * they are.
   */
  run(source: SourceDocument, { isFile }: { isFile: boolean }): void {
    const { root } = source;
    const use = (name: string): SourceNode | undefined => {
      const node = root.get(name);
      const value = node?.text();
      if (value !== undefined && isFile) this.plan.secret(name, value);
      return value === undefined ? undefined : node;
    };
    this.addOpenAi(root, use);
    for (const { id, credentialVariables } of providerDefinitions) {
      const found = credentialVariables.find(
        (name) => name !== "OPENAI_API_KEY" && root.get(name) !== undefined,
      );
      if (found === undefined) continue;
      use(found)?.report("imported", `the provider ${id}`);
      this.plan.provider({ vendor: id, apiKey: `\${${found}}`, baseUrl: this.addressOf(root, id) });
    }
    for (const name of [
      "OPENAI_ORG_ID",
      "OPENAI_ORGANIZATION",
      "OPENAI_PROJECT_ID",
      "OPENAI_PROJECT",
    ])
      if (
        root.get(name)?.text() !== undefined &&
        this.plan.providers.every(({ id }) => id !== "openai")
      )
        root.get(name)?.report("left_out", "belongs to api.openai.com, which is not asked");
    if (isFile) source.finish(() => "is no variable of a provider");
  }

  private addOpenAi(root: SourceNode, use: (name: string) => SourceNode | undefined): void {
    const key = use("OPENAI_API_KEY");
    const address = root.get("OPENAI_BASE_URL") ?? root.get("OPENAI_API_BASE");
    const given = address?.text()?.replace(/\/+$/, "");
    const written = given === undefined ? openaiAddress : usableAddress(address, given);
    const vendor = written === openaiAddress ? "openai" : vendorAt(written);
    if (key === undefined && address === undefined) return;
    const headers = {
      ...this.headerOf(root, ["OPENAI_ORG_ID", "OPENAI_ORGANIZATION"], "OpenAI-Organization"),
      ...this.headerOf(root, ["OPENAI_PROJECT_ID", "OPENAI_PROJECT"], "OpenAI-Project"),
    };
    const upstream = {
      vendor,
      ...(vendor === undefined ? { name: hostName(written) ?? "server" } : {}),
      baseUrl: written === openaiAddress ? undefined : written,
      apiKey: "${OPENAI_API_KEY}",
      ...(vendor === "openai" && Object.keys(headers).length > 0 ? { headers } : {}),
    };
    const model = root.get("OPENAI_MODEL") ?? root.get("OPENAI_MODEL_NAME");
    const name = model?.text();
    const added =
      name === undefined ? this.plan.provider(upstream) : this.withModel(upstream, name, model);
    if (typeof added === "object") return (address ?? key)?.report("left_out", added.problem);
    const id = added;
    key?.report("imported", `the provider ${id}`);
    address?.report("imported", `the provider ${id} at ${written}`);
    if (name === undefined && vendor === undefined)
      address?.report(
        "changed",
        "the server's models are not known: add them to models, or set OPENAI_MODEL",
      );
  }

  private withModel(
    upstream: Parameters<ImportPlan["addModel"]>[0],
    name: string,
    node: SourceNode | undefined,
  ): string | { problem: string } {
    const id = this.plan.modelId(name, upstream.vendor ?? upstream.name ?? "server");
    const price = this.plan.addModel(upstream, { id, upstreamModel: name, settings: {} });
    if (typeof price === "object") return price;
    this.plan.names.set(name, id);
    const unpriced = withoutPrice(price);
    if (unpriced === undefined) node?.report("imported", `${name} is ${id}`);
    else node?.report("changed", `${name} is ${id}; ${unpriced}`);
    return this.plan.providers.at(-1)?.id ?? "";
  }

  private headerOf(
    root: SourceNode,
    names: readonly string[],
    header: string,
  ): Record<string, string> {
    const node = names.flatMap((name) => root.get(name) ?? [])[0];
    const value = node?.text();
    if (value !== undefined) node?.report("imported", `the header ${header}`);
    return value === undefined ? {} : { [header]: value };
  }

  private addressOf(root: SourceNode, vendor: string): string | undefined {
    if (vendor !== "anthropic") return undefined;
    const node = root.get("ANTHROPIC_BASE_URL");
    const written = node?.text()?.replace(/\/+$/, "");
    if (written === undefined) return undefined;
    node?.report("imported", `the provider anthropic at ${written}`);
    return /\/v1$/.test(written) ? written : `${written}/v1`;
  }
}
