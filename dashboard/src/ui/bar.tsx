import style from "./ui.module.css";

/** How much of a whole is used, as a bar with its figures in words beside it. */
export function Bar({
  label,
  share,
  marks = [],
  isProgress = false,
}: {
  label: string;
  share: number;
  marks?: readonly number[];
  /** Whether all of it is the aim, not the end of what may be used. */
  isProgress?: boolean;
}) {
  const full = isProgress ? style.barDone : style.barFull;
  const percent = Math.max(0, Math.min(100, Math.round(share * 100)));
  return (
    <svg
      className={style.bar}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${Math.round(share * 100)} % ${isProgress ? "done" : "used"}`}
    >
      <rect width="100" height="6" rx="1" className={style.barRest} />
      <rect width={percent} height="6" rx="1" className={share >= 1 ? full : style.barUsed} />
      {marks
        .filter((mark) => mark < 100)
        .map((mark) => (
          <rect key={mark} x={mark} width="0.6" height="6" className={style.barMark} />
        ))}
    </svg>
  );
}
