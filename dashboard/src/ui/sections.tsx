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
  return (
    <nav aria-label="Sections" className={`${style.tabs} ${style.sections}`}>
      {sections.map(([id, label]) => (
        <button
          key={id}
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
