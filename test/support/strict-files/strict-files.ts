import { fieldsOf } from "../strict-vendors/reading.ts";
import type { Fields } from "../strict-vendors/rule.ts";
import { liveAnswer } from "../strict-batches/vendor-doubles.ts";
import { type FileCall, fileRules, type FileVendor, type StoredFile } from "./file-rules.ts";

/** A request to a model. */
interface Asked {
  vendor: FileVendor;
  text: string;
}

/** Doubles of the file APIs of three vendors, on one port, with models that read the files. */
export class StrictFiles {
  /** The files that are stored now. */
  readonly stored: StoredFile[] = [];
  /** The names of the rules by which calls were refused. */
  readonly refusals: string[] = [];
  /** The requests to models that were answered. */
  readonly asked: Asked[] = [];
  /** The number of uploads so far. */
  uploads = 0;
  /** What the next uploads end in: an error before or after the file is stored. */
  failing: "before" | "after" | undefined;
  private readonly server = Bun.serve({ port: 0, fetch: (request) => this.serve(request) });

  baseUrl(vendor: FileVendor): string {
    return `http://127.0.0.1:${this.server.port}/${vendor}`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private async serve(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const begun = /^\/upload\/google\/files$/.exec(pathname);
    if (begun !== null) return this.continueUpload(request, searchParams);
    const [, vendor, path] = /^\/(openai|anthropic|google)(\/.*)$/.exec(pathname) ?? [];
    if (vendor === undefined || path === undefined) return new Response("", { status: 404 });
    const call = await this.read(request, { vendor: vendor as FileVendor, path });
    const rule = fileRules.find((one) => one.vendor === vendor && one.when(call));
    if (rule !== undefined) {
      this.refusals.push(`${rule.vendor}/${rule.id}`);
      return Response.json(rule.body(call), { status: rule.status });
    }
    return path.startsWith("/files") ? this.answerFiles(call) : this.answerModel(call);
  }

  private async read(
    request: Request,
    { vendor, path }: { vendor: FileVendor; path: string },
  ): Promise<FileCall> {
    const { method, headers } = request;
    const credential = credentialOf(headers);
    const call = { vendor, path, method, headers, credential, body: {}, named: [] };
    if (method !== "POST") return call;
    if (path === "/files") {
      const form = await request.formData();
      return { ...call, body: Object.fromEntries(form.entries()) };
    }
    const body = fieldsOf(await request.json());
    const named = namedIn(body).map((each) => ({
      ...each,
      file: this.stored.find((file) => file.id === each.id && file.credential === credential),
    }));
    return { ...call, body, named };
  }

  private async answerFiles({
    vendor,
    method,
    path,
    credential,
    body,
  }: FileCall): Promise<Response> {
    const own = this.stored.filter(
      (file) => file.vendor === vendor && file.credential === credential,
    );
    if (method === "GET")
      return Response.json({ data: own.map(({ id, filename }) => ({ id, filename })) });
    if (method === "DELETE") {
      const file = own.find(({ id }) => id.split("/").at(-1) === path.split("/").at(-1));
      if (file === undefined)
        return Response.json(
          { error: { message: "none" } },
          { status: vendor === "google" ? 403 : 404 },
        );
      this.stored.splice(this.stored.indexOf(file), 1);
      return Response.json({});
    }
    const file = body["file"] as File;
    const number = this.uploads + 1;
    const seconds = body["expires_after[seconds]"] ?? body["expires_in_seconds"];
    return this.store(
      {
        id: vendor === "openai" ? `file-up${number}` : `file_up${number}`,
        vendor,
        credential,
        filename: file.name,
        type: file.type,
        content: Buffer.from(await file.arrayBuffer()),
        livesSeconds: Number(seconds),
      },
      ({ id }) => ({ id }),
    );
  }

  /** Answers Google's two calls of an upload; the second one has the content. */
  private async continueUpload(request: Request, query: URLSearchParams): Promise<Response> {
    const { headers } = request;
    const command = headers.get("x-goog-upload-command");
    if (command === "start") {
      const { file } = (await request.json()) as { file: { name: string; displayName: string } };
      const rest = new URLSearchParams({
        name: file.name,
        shown: file.displayName,
        type: headers.get("x-goog-upload-header-content-type") ?? "",
        bytes: headers.get("x-goog-upload-header-content-length") ?? "",
      });
      const address = new URL(request.url);
      address.search = rest.toString();
      return Response.json({}, { headers: { "x-goog-upload-url": address.href } });
    }
    const content = Buffer.from(await request.arrayBuffer());
    if (command !== "upload, finalize" || content.byteLength !== Number(query.get("bytes")))
      return Response.json({ error: { message: "incomplete" } }, { status: 400 });
    return this.store(
      {
        id: `${this.baseUrl("google")}/${query.get("name")}`,
        vendor: "google",
        credential: credentialOf(headers),
        filename: query.get("shown") ?? "",
        type: query.get("type") ?? "",
        content,
        livesSeconds: 48 * 3_600,
      },
      ({ id }) => ({ file: { name: query.get("name"), uri: id, state: "ACTIVE" } }),
    );
  }

  private store(file: StoredFile, shown: (file: StoredFile) => object): Response {
    this.uploads += 1;
    const { failing } = this;
    this.failing = undefined;
    if (failing !== "before") this.stored.push(file);
    return failing === undefined
      ? Response.json(shown(file))
      : Response.json(
          { error: { message: "later" } },
          { status: failing === "before" ? 404 : 503 },
        );
  }

  private answerModel({ vendor, path, body }: FileCall): Response {
    // Streams are answered whole, as some servers do.
    const whole = path.replace(":streamG", ":g");
    const answer = path.endsWith("/responses") ? responseAnswer : liveAnswer(whole);
    if (answer === undefined) return new Response("", { status: 404 });
    this.asked.push({ vendor, text: JSON.stringify(body) });
    return Response.json(answer);
  }
}

const responseAnswer = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "files-1",
  output: [
    {
      type: "message",
      id: "msg_1",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "read", annotations: [] }],
    },
  ],
  usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12 },
};

const credentialOf = (headers: Headers): string =>
  headers.get("x-api-key") ??
  headers.get("x-goog-api-key") ??
  (headers.get("authorization") ?? "").replace("Bearer ", "");

/** Returns every part of a request that names a file. */
function namedIn(value: unknown): { id: string; part: Fields }[] {
  if (typeof value !== "object" || value === null) return [];
  const part = fieldsOf(value);
  const { fileUri } = fieldsOf(part["fileData"]);
  const { file_id: inFile } = fieldsOf(part["file"]);
  const { file_id: inSource } = fieldsOf(part["source"]);
  const id = [part["file_id"], fileUri, inSource, inFile].find((each) => typeof each === "string");
  const own = inFile === undefined ? part : fieldsOf(part["file"]);
  if (typeof id === "string") return [{ id, part: own }];
  return Object.values(value).flatMap(namedIn);
}
