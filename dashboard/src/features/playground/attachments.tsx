import { useRef } from "react";
import { Button } from "../../ui/button.tsx";
import type { Attachment } from "./draft.ts";
import own from "./playground.module.css";

const bytesMax = 8 * 1024 * 1024;
const accepted =
  "image/png,image/jpeg,image/webp,image/gif,application/pdf,text/plain,text/markdown,text/csv,application/json";

const readFile = (file: File): Promise<Attachment> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name, type: file.type, url: String(reader.result) });
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });

/** Reads files that a person chose, pasted or dropped. Rejects for one that is too large. */
export function readFiles(files: readonly File[]): Promise<Attachment[]> {
  const large = files.find(({ size }) => size > bytesMax);
  if (large !== undefined)
    return Promise.reject(new Error(`${large.name} is larger than ${bytesMax / 1024 / 1024} MB.`));
  return Promise.all(files.map(readFile));
}

/** Chooses pictures, sound and documents that go along with the message. */
export function AttachButton({
  hears,
  onFiles,
}: {
  /** Whether sound may go along. */
  hears: boolean;
  onFiles: (files: readonly File[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        accept={hears ? `${accepted},audio/*` : accepted}
        aria-label={hears ? "Pictures, sound and documents" : "Pictures and documents"}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <Button look="plain" onClick={() => input.current?.click()}>
        Attach
      </Button>
    </>
  );
}

/** What goes along with the message; it stays in the page until it is sent. */
export function Attached({
  files,
  onChange,
}: {
  files: readonly Attachment[];
  onChange: (files: readonly Attachment[]) => void;
}) {
  if (files.length === 0) return null;
  return (
    <div className={own["acts"]}>
      {files.map((file, index) => (
        <Button
          key={`${file.name} ${index}`}
          look="plain"
          aria-label={`${file.name}: remove`}
          onClick={() => onChange(files.filter((_, other) => other !== index))}
        >
          {file.type.startsWith("image/") ? <img src={file.url} alt="" /> : null}
          {file.name} ✕
        </Button>
      ))}
    </div>
  );
}
