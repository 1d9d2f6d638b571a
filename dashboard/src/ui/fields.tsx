import {
  type InputHTMLAttributes,
  type ReactNode,
  type TextareaHTMLAttributes,
  useId,
} from "react";
import style from "./ui.module.css";

/** A field with its label and what to know about it. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: (id: string) => ReactNode;
}) {
  const id = useId();
  return (
    <div className={style.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
    </div>
  );
}

/** A line of text to type. */
export function Input(props: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...props} className={style.input} />;
}

/** Several lines of text to type. */
export function TextArea(props: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea {...props} className={style.input} />;
}

/** A choice of a few. */
export function Select<Value extends string>({
  id,
  value,
  onChange,
  options,
  label,
}: {
  id?: string;
  value: Value;
  onChange: (value: Value) => void;
  options: readonly (readonly [Value, string])[];
  label?: string;
}) {
  const choose = (text: string): void => {
    const chosen = options.find(([key]) => key === text);
    if (chosen !== undefined) onChange(chosen[0]);
  };
  return (
    <select
      id={id}
      aria-label={label}
      className={style.input}
      value={value}
      onChange={(event) => choose(event.target.value)}
    >
      {options.map(([key, text]) => (
        <option key={key} value={key}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Something that is on or off. */
export function Check({
  label,
  checked,
  onChange,
  hint,
  disabled = false,
}: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
  disabled?: boolean;
}) {
  return (
    <label className={style.check}>
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        {label}
        {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
      </span>
    </label>
  );
}

/** Items of a list as a person types them: separated by commas or new lines. */
export const listOf = (text: string): string[] =>
  text
    .split(/[,\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** A number as typed; undefined where nothing was. */
export const numberOf = (text: string): number | undefined =>
  text.trim() === "" ? undefined : Number(text);
