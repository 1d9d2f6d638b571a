import { useEffect, useRef } from "react";
import style from "./ui.module.css";

/** The sections of a page, of which the address names the one that is shown. */
export function Sections<Id extends string>({
  sections,
  shown,
  onChoose,
}: {
  sections: readonly (readonly [id: Id, label: string])[];
  shown: Id;
  onChoose: (id: Id) => void;
}) {
  const active = useRef<HTMLButtonElement>(null);
  // On a phone the chosen one may be beyond the edge.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another section is another button.
  useEffect(() => {
    active.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown]);
  return (
    <nav aria-label="Sections" className={`${style.tabs} ${style.sections}`}>
      {sections.map(([id, label]) => (
        <button
          key={id}
          ref={id === shown ? active : undefined}
          type="button"
          className={style.tab}
          data-active={id === shown ? "" : undefined}
          aria-current={id === shown ? "page" : undefined}
          onClick={() => onChoose(id)}
        >
          {label}
        </button>
      ))}
    </nav>
  );
}
