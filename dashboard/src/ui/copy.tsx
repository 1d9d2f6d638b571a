import { useState } from "react";
import { copyText } from "../lib/clipboard.ts";
import { Button } from "./button.tsx";
import style from "./ui.module.css";

/**
 * Copies a text, and gives the word for how that ended; undefined before it, and once the text is
 * another.
 */
function useCopy(text: string): readonly [word: string | undefined, copy: () => void] {
  const [copied, setCopied] = useState<{ text: string; word: string }>();
  const copy = (): void => {
    void copyText(text).then((isCopied) =>
      setCopied({ text, word: isCopied ? "Copied" : "Not copied: select it" }),
    );
  };
  return [copied?.text === text ? copied.word : undefined, copy];
}

/** An id as programs send it, with a button that copies it. */
export function Id({ children: id }: { children: string }) {
  const [word, copy] = useCopy(id);
  return (
    <span className={style.id}>
      <code>{id}</code>
      <button
        type="button"
        className={style.copyId}
        aria-label={`${word ?? "Copy"} ${id}`}
        title={word ?? "Copy"}
        onClick={copy}
      >
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={word === "Copied" ? "M5 13l4 4L19 7" : "M9 9h11v11H9zM5 15H4V4h11v1"} />
        </svg>
      </button>
    </span>
  );
}

/** A button that copies a text and says how that ended. */
export function CopyButton({
  text,
  label = "Copy",
  className,
}: {
  text: string;
  label?: string | undefined;
  className?: string | undefined;
}) {
  const [word, copy] = useCopy(text);
  return (
    <Button look="plain" className={className} onClick={copy}>
      {word ?? label}
    </Button>
  );
}

/** Text to copy, with its button. */
export const Code = ({ text, label }: { text: string; label?: string }) => (
  <pre className={style.code}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it (axe, scrollable-region-focusable). */}
    <code tabIndex={0}>{text}</code>
    <CopyButton text={text} label={label} className={style.copy} />
  </pre>
);
