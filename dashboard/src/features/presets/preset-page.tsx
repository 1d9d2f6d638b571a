import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Actions, Button, linkLook } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input, TextArea } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Picker } from "../../ui/picker.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { reachableQuery } from "../models/api.ts";
import { choiceOf } from "../models/model-choice.ts";
import { ModelsField } from "../models/models-field.tsx";
import { useNames } from "../usage/use-names.ts";
import {
  type Preset,
  type PresetVersion,
  changePreset,
  deletePreset,
  presetQuery,
  restoreVersion,
  versionsQuery,
} from "./api.ts";
import { Bench, type PresetField, configOf, presetFields, textsOf } from "./bench.tsx";

const route = getRouteApi("/presets/$slug");
const groups = ["Model", "Sampling", "Output", "Tools", "Routing"] as const;

function Versions({
  preset,
  mayWrite,
  onRestored,
}: {
  preset: Preset;
  mayWrite: boolean;
  onRestored: () => void;
}) {
  const versions = useQuery(versionsQuery(preset.slug));
  const { people } = useNames(["person"]);
  const [seen, setSeen] = useState<PresetVersion>();
  const restore = useMutation({
    meta: { done: "Version restored" },
    mutationFn: restoreVersion,
    onSuccess: () => {
      setSeen(undefined);
      onRestored();
    },
  });
  return (
    <Card title="Versions" flush>
      <Loaded query={versions} height={120}>
        {({ data: rows }) => (
          <Table
            rows={rows}
            rowKey={({ version }) => String(version)}
            caption="Versions"
            columns={[
              {
                head: "Version",
                phone: "title",
                cell: ({ version }) =>
                  version === preset.version ? (
                    <Status kind="good">{`${version}, in force`}</Status>
                  ) : (
                    version
                  ),
              },
              {
                head: `Made, ${zoneName()}`,
                phone: "when",
                cell: ({ created_at: at }) => <Moment at={at} />,
              },
              { head: "By", cell: ({ author }) => people.get(author ?? "") ?? author ?? "unknown" },
              {
                head: "Actions",
                phone: "actions",
                cell: (version) => (
                  <Button look="plain" onClick={() => setSeen(version)}>
                    Show
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      <Modal
        title={`Version ${seen?.version ?? ""}`}
        open={seen !== undefined}
        onClose={() => setSeen(undefined)}
      >
        <p>{seen?.name}</p>
        <Code text={JSON.stringify(seen?.config ?? {}, null, 2)} />
        {restore.error === null ? null : <Problem error={restore.error} />}
        {!mayWrite || seen === undefined || seen.version === preset.version ? null : (
          <Actions>
            <Button
              disabled={restore.isPending}
              onClick={() => restore.mutate({ slug: preset.slug, version: seen.version })}
            >
              Restore this version
            </Button>
          </Actions>
        )}
      </Modal>
    </Card>
  );
}

/** The model that a preset names, found by name; none leaves it to the request. */
function ModelField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (id: string) => void;
}) {
  const { data: catalog } = useQuery(reachableQuery);
  return (
    <Field label={label}>
      {() => (
        <Picker
          label={label}
          value={value}
          shown={value === "" ? "Left to the request" : value}
          groups={[{ value: "", items: (catalog?.data ?? []).map(choiceOf) }]}
          onChange={onChange}
          search="Search models"
          none="No model has that in its name."
          last={["Leave it to the request", () => onChange("")]}
        />
      )}
    </Field>
  );
}

function Editor({ preset, mayWrite }: { preset: Preset; mayWrite: boolean }) {
  const queries = useQueryClient();
  const [name, setName] = useState(preset.name);
  const [description, setDescription] = useState(preset.description ?? "");
  const [texts, setTexts] = useState(() => textsOf(preset.config));
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["presets"] });
  const save = useMutation({
    mutationFn: async () =>
      changePreset({
        slug: preset.slug,
        name,
        description: description === "" ? null : description,
        config: configOf(texts),
      }),
    onSuccess: refresh,
  });
  const field = (of: PresetField) => {
    const value = texts[of.name] ?? "";
    const set = (text: string): void => setTexts({ ...texts, [of.name]: text });
    const hint = of.hint === undefined ? {} : { hint: of.hint };
    if (mayWrite && of.kind === "model")
      return <ModelField key={of.name} label={of.label} value={value} onChange={set} />;
    if (mayWrite && of.kind === "models")
      return (
        <div key={of.name} className={style.form}>
          <ModelsField label={of.label} hint={of.hint ?? ""} value={value} onChange={set} />
        </div>
      );
    return (
      <Field key={of.name} label={of.label} {...hint}>
        {(id) => {
          const shared = { id, value, readOnly: !mayWrite };
          return of.kind === "lines" || of.kind === "json" ? (
            <TextArea {...shared} onChange={(event) => set(event.target.value)} />
          ) : (
            <Input
              {...shared}
              inputMode={of.kind === "number" ? "decimal" : "text"}
              onChange={(event) => set(event.target.value)}
            />
          );
        }}
      </Field>
    );
  };
  return (
    <>
      <Card title="Settings">
        <Form
          action="Save preset"
          work={save}
          onSubmit={() => save.mutate()}
          disabled={!mayWrite}
          more={
            save.isSuccess ? (
              <Status kind="good">{`Saved as version ${save.data.version}`}</Status>
            ) : null
          }
        >
          <div className={style.grid}>
            <Field param="name" label="Name">
              {(id) => (
                <Input
                  id={id}
                  value={name}
                  required
                  maxLength={200}
                  readOnly={!mayWrite}
                  onChange={(event) => setName(event.target.value)}
                />
              )}
            </Field>
            <Field label="Description">
              {(id) => (
                <Input
                  id={id}
                  value={description}
                  readOnly={!mayWrite}
                  onChange={(event) => setDescription(event.target.value)}
                />
              )}
            </Field>
          </div>
          {groups.map((group) => (
            <fieldset key={group} className={style.fieldset}>
              <legend>{group}</legend>
              <div className={style.grid}>
                {presetFields.filter((each) => each.group === group).map(field)}
              </div>
            </fieldset>
          ))}
        </Form>
      </Card>
      <Bench slug={preset.slug} draft={() => configOf(texts)} />
    </>
  );
}

/** One preset: every field, a bench to test it, its versions and how to call it. */
export function PresetPage() {
  const { slug } = route.useParams();
  const mayWrite = useScope("write:presets");
  const mayAsk = useScope("inference");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const preset = useQuery(presetQuery(slug));
  const isThere = preset.error === null;
  const [isDoomed, setDoomed] = useState(false);
  const remove = useMutation({
    meta: { done: "Preset deleted" },
    mutationFn: () => deletePreset(slug),
    onSuccess: async () => {
      await navigate({ to: "/presets" });
      await queries.invalidateQueries({ queryKey: ["presets"] });
    },
  });
  return (
    <>
      <PageHead title={preset.data?.name ?? slug} within={<Link to="/presets">Presets</Link>}>
        {mayAsk && isThere ? (
          <Link to="/playground" search={{ model: `@preset/${slug}` }} className={linkLook}>
            Open in the playground
          </Link>
        ) : null}
        {mayWrite && isThere ? (
          <Button look="plain" onClick={() => setDoomed(true)}>
            Delete preset
          </Button>
        ) : null}
      </PageHead>
      <Loaded query={preset} height={480}>
        {(data) => (
          <>
            <Editor key={data.version} preset={data} mayWrite={mayWrite} />
            <Versions
              preset={data}
              mayWrite={mayWrite}
              onRestored={() => void queries.invalidateQueries({ queryKey: ["presets"] })}
            />
            <Card title="Call it">
              <Code
                text={`curl ${location.origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n  -d '{"model":"@preset/${slug}","messages":[{"role":"user","content":"Hello"}]}'`}
              />
            </Card>
          </>
        )}
      </Loaded>
      <Confirm
        title={`Delete ${preset.data?.name ?? slug}`}
        open={isDoomed}
        onClose={() => setDoomed(false)}
        action="Delete preset"
        work={remove}
        onConfirm={() => remove.mutate()}
      >
        <p>Requests that name @preset/{slug} fail at once with 404. Its versions go with it.</p>
      </Confirm>
    </>
  );
}
