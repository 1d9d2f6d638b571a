import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { localTime, utc } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Table } from "../../ui/table.tsx";
import { createPreset, presetPagesQuery } from "./api.ts";

function NewPreset() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  const suggested = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  const create = useMutation({
    mutationFn: () => createPreset({ name, slug: slug || suggested, config: {} }),
    onSuccess: async (preset) => {
      await queries.invalidateQueries({ queryKey: ["presets"] });
      await navigate({ to: "/presets/$slug", params: { slug: preset.slug } });
    },
  });
  return (
    <Form action="Create preset" work={create} onSubmit={() => create.mutate()}>
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            value={name}
            required
            maxLength={200}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field
        param="slug"
        label="Slug"
        hint="Requests name the preset by it, as @preset/slug. It never changes."
      >
        {(id) => (
          <Input
            id={id}
            value={slug}
            placeholder={suggested}
            pattern="[a-z0-9][a-z0-9\-]*"
            onChange={(event) => setSlug(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}

const modelOf = ({ model, models }: Readonly<Record<string, unknown>>): string =>
  typeof model === "string"
    ? model
    : Array.isArray(models)
      ? String(models[0])
      : "named by the request";

/** Presets of the workspace: settings that requests name instead of repeating them. */
export function PresetsPage() {
  const mayWrite = useScope("write:presets");
  const presets = useInfiniteQuery(presetPagesQuery);
  const [isMaking, setMaking] = useState(false);
  const create = mayWrite ? <Button onClick={() => setMaking(true)}>Create preset</Button> : null;
  return (
    <>
      <PageHead title="Presets">{create}</PageHead>
      <Card flush>
        <LoadedPages query={presets} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={create}>
                No preset yet. A preset keeps a model, a system prompt and settings under a name.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ slug }) => slug}
                caption="Presets"
                columns={[
                  {
                    head: "Name",
                    phone: "title",
                    cell: ({ name, slug }) => (
                      <>
                        <div>
                          <Link to="/presets/$slug" params={{ slug }}>
                            {name}
                          </Link>
                        </div>
                        <code>@preset/{slug}</code>
                      </>
                    ),
                  },
                  {
                    head: "Model",
                    phone: "figure",
                    cell: ({ config }) => modelOf(config),
                  },
                  { head: "Version", number: true, cell: ({ version }) => version },
                  {
                    head: `Changed, ${zoneName()}`,
                    phone: "when",
                    lead: "changed",
                    cell: ({ updated_at: at }) => <Moment at={at} />,
                  },
                  {
                    head: "Last used",
                    phone: "state",
                    lead: "used",
                    cell: ({ id, last_used_at: at }) =>
                      at === null ? (
                        "never"
                      ) : (
                        <Link to="/activity" search={{ preset_id: id }} title={utc(at)}>
                          {localTime(at)}
                        </Link>
                      ),
                  },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
      <Modal title="Create preset" open={isMaking} onClose={() => setMaking(false)}>
        <NewPreset />
      </Modal>
    </>
  );
}
