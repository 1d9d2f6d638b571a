import type {
  ConversionReport,
  ConversionTask,
} from "../../../src/documents/converter/converter-messages.ts";

/** What the stand-in for the converter does, by the word after `%PDF-` in its file. */
const acts: Record<string, () => void> = {
  hang: () => {
    for (;;);
  },
  crash: () => process.kill(process.pid, "SIGSEGV"),
  leave: () => process.exit(3),
  silence: () => undefined,
  progress: () => {
    setInterval(() => report({ kind: "progress" }), 20);
  },
  failed: () => report({ kind: "failed", message: "out of memory" }),
  unfit: () => report({ kind: "unfit", message: "no language data" }),
  refuse: () => report({ kind: "refused", message: "The document is damaged." }),
  environment: () =>
    report({ kind: "converted", markdown: Object.keys(process.env).sort().join(" "), pages: 1 }),
};

function report(message: ConversionReport): void {
  process.send?.(message);
}

process.on("message", ({ bytes }: ConversionTask) => {
  const act = acts[new TextDecoder().decode(bytes).replace("%PDF-", "")];
  if (act === undefined) report({ kind: "converted", markdown: String(process.pid), pages: 1 });
  else act();
});
process.on("disconnect", () => process.exit(0));
