import { zoneName } from "../../lib/time.ts";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Answers, Bodies } from "../../lib/api-types.ts";
import { request, sending } from "../../lib/api.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, Input, Select, TextArea } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";

type Incident = Answers["GET /admin/incidents"]["data"][number];
type State = Incident["state"];

const incidentsQuery = queryOptions({
  queryKey: ["operator", "incidents"],
  queryFn: () => request<Answers["GET /admin/incidents"]>("/admin/incidents"),
});
const create = (body: Bodies["POST /admin/incidents"]) =>
  request("/admin/incidents", sending("POST /admin/incidents", body));
const update = ({ id, ...body }: Bodies["PATCH /admin/incidents/{id}"] & { id: string }) =>
  request(`/admin/incidents/${id}`, sending("PATCH /admin/incidents/{id}", body));
const remove = (id: string) => request(`/admin/incidents/${id}`, { method: "DELETE" });

const states = [
  ["investigating", "Investigating"],
  ["identified", "Cause found"],
  ["monitoring", "Mended, being watched"],
  ["resolved", "Resolved"],
] as const;
const wordOf = (state: State): string => states.find(([name]) => name === state)?.[1] ?? state;

/** Publishes an incident, or what is new about one. */
function IncidentForm({ of, onDone }: { of: Incident | undefined; onDone: () => void }) {
  const [title, setTitle] = useState("");
  const [text, setText] = useState("");
  const [state, setState] = useState<State>(of?.state ?? "investigating");
  const save = useMutation({
    meta: { done: "Incident saved" },
    mutationFn: () =>
      of === undefined ? create({ title, text, state }) : update({ id: of.id, text, state }),
    onSuccess: onDone,
  });
  return (
    <Form action="Publish" work={save} onSubmit={() => save.mutate()}>
      {of === undefined ? (
        <Field param="title" label="Title">
          {(id) => (
            <Input
              id={id}
              value={title}
              required
              maxLength={200}
              onChange={(event) => setTitle(event.target.value)}
            />
          )}
        </Field>
      ) : null}
      <Field label="What is known" hint="Everybody reads it at /status.">
        {(id) => (
          <TextArea
            id={id}
            value={text}
            required
            maxLength={2_000}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <Field label="State">
        {(id) => <Select id={id} value={state} options={states} onChange={setState} />}
      </Field>
    </Form>
  );
}

/** Incidents that operators describe on the public status page. */
export function Incidents() {
  const queries = useQueryClient();
  const incidents = useQuery(incidentsQuery);
  const [opened, setOpened] = useState<{ of: Incident | undefined }>();
  const [doomed, setDoomed] = useState<Incident>();
  const done = (): void => {
    setOpened(undefined);
    setDoomed(undefined);
    void queries.invalidateQueries({ queryKey: ["operator", "incidents"] });
  };
  const removing = useMutation({
    meta: { done: "Incident deleted" },
    mutationFn: remove,
    onSuccess: done,
  });
  return (
    <>
      <Card
        title="Incidents on the status page"
        flush
        actions={<Button onClick={() => setOpened({ of: undefined })}>Publish incident</Button>}
      >
        <Loaded query={incidents} height={240}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty action={<a href="/status">See the status page</a>}>
                Nothing published. The page reports providers that fail by itself.
              </Empty>
            ) : (
              <Table
                rows={data}
                rowKey={({ id }) => id}
                caption="Incidents"
                columns={[
                  { head: "Incident", phone: "title", cell: ({ title }) => title },
                  {
                    head: "Last update",
                    phone: "when",
                    cell: ({ updates }) => updates[0]?.text ?? "",
                  },
                  {
                    head: "State",
                    phone: "state",
                    cell: ({ state }) => (
                      <Status kind={state === "resolved" ? "good" : "warning"}>
                        {wordOf(state)}
                      </Status>
                    ),
                  },
                  {
                    head: `Since, ${zoneName()}`,
                    cell: ({ started_at: at }) => <Moment at={at} />,
                  },
                  {
                    head: "Actions",
                    phone: "figure",
                    cell: (incident) => (
                      <RowMenu
                        label={`Actions of ${incident.title}`}
                        actions={[
                          ["Add update", () => setOpened({ of: incident })],
                          ["Delete", () => setDoomed(incident)],
                        ]}
                      />
                    ),
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      <Modal
        title={opened?.of === undefined ? "Publish incident" : `Update of ${opened.of.title}`}
        open={opened !== undefined}
        onClose={() => setOpened(undefined)}
      >
        {opened === undefined ? null : <IncidentForm of={opened.of} onDone={done} />}
      </Modal>
      <Confirm
        title={`Delete ${doomed?.title ?? ""}`}
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        action="Delete incident"
        work={removing}
        onConfirm={() => doomed && removing.mutate(doomed.id)}
      >
        <p>It leaves the status page and its feed, with every update.</p>
      </Confirm>
    </>
  );
}
