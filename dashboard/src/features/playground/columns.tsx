import { useState } from "react";
import { ModelPicker, type ChoiceGroup } from "../models/model-picker.tsx";
import { Drawer } from "../../ui/overlay.tsx";
import { Actions, Button } from "../../ui/parts.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { type Column, changesOf, columnOf, columnsMax } from "./draft.ts";
import own from "./playground.module.css";
import { SavePreset } from "./save-preset.tsx";
import { SettingsForm } from "./settings-form.tsx";

interface ColumnsProps {
  columns: readonly Column[];
  groups: readonly ChoiceGroup[];
  /** The model of a column that names none. */
  suggested: string;
  mayWritePresets: boolean;
  onChange: (columns: readonly Column[]) => void;
}

function ColumnHead({
  column,
  index,
  props: { columns, groups, suggested, mayWritePresets, onChange },
}: {
  column: Column;
  index: number;
  props: ColumnsProps;
}) {
  const [shown, setShown] = useState<"settings" | "preset">();
  const label = columns.length === 1 ? "Model" : `Model ${index + 1}`;
  const name = column.model || suggested;
  const changes = changesOf(column);
  const change = (settings: Partial<Column>): void =>
    onChange(columns.map((each) => (each.id === column.id ? { ...each, ...settings } : each)));
  const actions: (readonly [string, () => void])[] = [
    ...(columns.length < columnsMax
      ? [["Duplicate", () => onChange([...columns, columnOf(column)])] as const]
      : []),
    ...(mayWritePresets ? [["Save as preset", () => setShown("preset")] as const] : []),
    ...(columns.length > 1
      ? [["Remove", () => onChange(columns.filter(({ id }) => id !== column.id))] as const]
      : []),
  ];
  return (
    <div className={own["column"]}>
      <ModelPicker
        label={label}
        value={name}
        groups={groups}
        onChange={(model) => change({ model })}
      />
      <Button look="plain" onClick={() => setShown("settings")} aria-label={`Settings of ${name}`}>
        {changes === 0 ? "Settings" : `Settings (${changes})`}
      </Button>
      {actions.length === 0 ? null : <RowMenu label={`Actions of ${name}`} actions={actions} />}
      <Drawer
        title={`Settings of ${name}`}
        open={shown === "settings"}
        onClose={() => setShown(undefined)}
      >
        <SettingsForm draft={column} onChange={change} />
        {columns.length > 1 ? (
          <Actions>
            <Button
              look="plain"
              onClick={() => onChange(columns.map(({ id, model }) => ({ ...column, id, model })))}
            >
              Use for every model
            </Button>
          </Actions>
        ) : null}
      </Drawer>
      <SavePreset
        column={{ ...column, model: name }}
        open={shown === "preset"}
        onClose={() => setShown(undefined)}
        onSaved={(slug) => {
          setShown(undefined);
          onChange(
            columns.map((each) =>
              each.id === column.id
                ? { ...columnOf({ model: `@preset/${slug}` }), id: each.id }
                : each,
            ),
          );
        }}
      />
    </div>
  );
}

/** The models that are asked, side by side, each with settings of its own. */
export function Columns(props: ColumnsProps) {
  const { columns, onChange } = props;
  return (
    <div className={own["columns"]} data-columns={columns.length}>
      {columns.map((column, index) => (
        <ColumnHead key={column.id} column={column} index={index} props={props} />
      ))}
      {columns.length < columnsMax ? (
        <Button look="plain" onClick={() => onChange([...columns, columnOf()])}>
          Compare with another model
        </Button>
      ) : null}
    </div>
  );
}
