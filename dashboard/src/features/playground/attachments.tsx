import { useRef, useState } from "react";
import { Actions, Button } from "../../ui/parts.tsx";
import type { Attachment } from "./draft.ts";

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

/**
 * Pictures and documents that go along with the message; they stay in the page until it is sent.
 */
export function Attachments({
  files,
  onChange,
}: {
  files: readonly Attachment[];
  onChange: (files: readonly Attachment[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<string>();
  const add = async (chosen: FileList | null): Promise<void> => {
    const large = [...(chosen ?? [])].find(({ size }) => size > bytesMax);
    setProblem(
      large === undefined
        ? undefined
        : `${large.name} is larger than ${bytesMax / 1024 / 1024} MB.`,
    );
    if (large !== undefined || chosen === null) return;
    try {
      onChange([...files, ...(await Promise.all([...chosen].map(readFile)))]);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Actions>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        accept={accepted}
        aria-label="Pictures and documents"
        onChange={(event) => {
          void add(event.target.files);
          event.target.value = "";
        }}
      />
      <Button look="plain" onClick={() => input.current?.click()}>
        Add picture or document
      </Button>
      {files.map((file, index) => (
        <Button
          key={`${file.name} ${index}`}
          look="plain"
          aria-label={`${file.name}: remove`}
          onClick={() => onChange(files.filter((_, other) => other !== index))}
        >
          {file.name}: remove
        </Button>
      ))}
      {problem === undefined ? null : <span role="alert">{problem}</span>}
    </Actions>
  );
}
