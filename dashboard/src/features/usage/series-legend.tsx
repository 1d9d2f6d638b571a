import { count, usd } from "../../lib/format.ts";
import style from "../../ui/ui.module.css";
import type { Figure, chartOf } from "./api.ts";

/** Names the series of a chart, each with its colour and its sum. */
export const SeriesLegend = ({
  series,
  figure,
}: {
  series: ReturnType<typeof chartOf>["series"];
  figure: Figure;
}) => (
  <ul className={style["legend"]}>
    {series.map(({ key, name, colour, total }) => (
      <li key={key}>
        <span className={style["swatch"]} style={{ background: colour }} />
        {name} <strong>{figure === "cost" ? usd(total) : count(total)}</strong>
      </li>
    ))}
  </ul>
);
