/** Where files are sent, and on which key. */
export interface OcrTarget {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** What became of a file. */
export interface Extracted {
  status: number;
  /** The text as Markdown; empty where it was refused. */
  text: string;
}

/** Has a file read by a gateway. */
export async function extract({ url, headers }: OcrTarget, bytes: Uint8Array): Promise<Extracted> {
  const form = new FormData();
  form.set("image", new File([new Uint8Array(bytes)], "scan"));
  const response = await fetch(`${url}/v1/ocr/extract`, { method: "POST", headers, body: form });
  const { text = "" } = (await response.json()) as { text?: string };
  return { status: response.status, text };
}
