import style from "./picked.module.css";

/** What was chosen of many, each with a button that takes it away; nothing where none was. */
export function Picked({
  labelledBy,
  items,
  onRemove,
}: {
  /** The element that names the list. */
  labelledBy: string;
  items: readonly (readonly [value: string, label: string])[];
  /** Absent where nothing may be taken away. */
  onRemove: ((value: string) => void) | undefined;
}) {
  if (items.length === 0) return onRemove === undefined ? <span>none</span> : null;
  return (
    <ul className={style["picked"]} aria-labelledby={labelledBy}>
      {items.map(([value, label]) => (
        <li key={value} title={value}>
          <span>{label}</span>
          {onRemove === undefined ? null : (
            <button type="button" aria-label={`Remove ${label}`} onClick={() => onRemove(value)}>
              ×
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
