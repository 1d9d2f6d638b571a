// A picture or a PDF as Markdown; `npx bun examples/ocr.ts your-file.pdf` reads yours.
const url = `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1/ocr/extract`;
const path = process.argv[2] ?? `${import.meta.dir}/invoice.png`;

const form = new FormData();
form.set("image", Bun.file(path));
const response = await fetch(url, {
  method: "POST",
  headers: { authorization: `Bearer ${process.env["SWITCHYARD_KEY"]}` },
  body: form,
});
const { text, model, tokens, error } = (await response.json()) as {
  text?: string;
  model?: string;
  tokens?: number;
  error?: { code: string; message: string };
};
if (error !== undefined) throw new Error(`${error.code}: ${error.message}`);
console.log(text);
console.log(`${tokens} tokens, read by ${model}`);
