import { Tabs as Parts } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import style from "./ui.module.css";

/** Parts of a page or panel of which one is shown; the content of a hidden one is not rendered. */
export function Tabs({
  label,
  tabs,
}: {
  label: string;
  tabs: readonly (readonly [title: string, content: ReactNode])[];
}) {
  return (
    <Parts.Root defaultValue={tabs[0]?.[0]}>
      <Parts.List className={style.tabs ?? ""} aria-label={label}>
        {tabs.map(([title]) => (
          <Parts.Tab key={title} value={title} className={style.tab ?? ""}>
            {title}
          </Parts.Tab>
        ))}
      </Parts.List>
      {tabs.map(([title, content]) => (
        <Parts.Panel key={title} value={title} className={style.panel ?? ""}>
          {content}
        </Parts.Panel>
      ))}
    </Parts.Root>
  );
}
