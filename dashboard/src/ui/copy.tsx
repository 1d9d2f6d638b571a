import { useState } from "react";
import { Button } from "./button.tsx";
import style from "./ui.module.css";

/** Copies a text, and remembers which one was copied. */
function useCopy(text: string): readonly [isCopied: boolean, copy: () => void] {
  const [copied, setCopied] = useState<string>();
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(text));
  };
  return [copied === text, copy];
}

/** An id as programs send it, with a button that copies it. */
export function Id({ children: id }: { children: string }) {
  const [isCopied, copy] = useCopy(id);
  return (
    <span className={style.id}>
      <code>{id}</code>
      <button
        type="button"
        className={style.copyId}
        aria-label={isCopied ? `Copied ${id}` : `Copy ${id}`}
        title={isCopied ? "Copied" : "Copy"}
        onClick={copy}
      >
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={isCopied ? "M5 13l4 4L19 7" : "M9 9h11v11H9zM5 15H4V4h11v1"} />
        </svg>
      </button>
    </span>
  );
}

/** Text to copy, with a button that says when it was copied. */
export function Code({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, copy] = useCopy(text);
  return (
    <pre className={style.code}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it (axe, scrollable-region-focusable). */}
      <code tabIndex={0}>{text}</code>
      <Button look="plain" className={style.copy} onClick={copy}>
        {isCopied ? "Copied" : label}
      </Button>
    </pre>
  );
}
