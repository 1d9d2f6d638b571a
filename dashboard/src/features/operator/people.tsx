import type { Bodies } from "../../lib/api-types.ts";
import { sending } from "../../lib/api.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Actions, Button, Card, Empty, Loaded, Status, Moment } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { peopleQuery } from "./api.ts";
import { ChangeProblem, SearchField, useChange } from "./changes.tsx";

/** Everybody with an account; who runs the service, and who is shut out. */
export function People({
  search,
  onSearch,
}: {
  search: string | undefined;
  onSearch: (text: string) => void;
}) {
  const people = useQuery(peopleQuery(search));
  const changing = useChange();
  const patch = (id: string, body: Bodies["PATCH /admin/users/{id}"]): void =>
    changing.mutate({ path: `/admin/users/${id}`, ...sending("PATCH /admin/users/{id}", body) });
  return (
    <Card
      title="People"
      actions={<SearchField label="Search people" value={search} onSearch={onSearch} />}
      flush
    >
      <ChangeProblem error={changing.error} />
      <Loaded query={people} height={360}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>Nothing matches.</Empty>
          ) : (
            <Table
              rows={data}
              rowKey={({ id }) => id}
              caption="All people"
              columns={[
                {
                  head: "Name",
                  phone: "title",
                  cell: ({ id, name, email }) => (
                    <>
                      <div>
                        <Link to="/operator" search={{ group: "people", id }}>
                          {name}
                        </Link>
                      </div>
                      {email}
                    </>
                  ),
                },
                {
                  head: "State",
                  phone: "figure",
                  cell: ({ blocked, operator }) => (
                    <Status kind={blocked ? "bad" : "good"}>
                      {blocked ? "blocked" : operator ? "operator" : "active"}
                    </Status>
                  ),
                },
                {
                  head: "Last signed in",
                  phone: "when",
                  cell: ({ last_signed_in_at: at }) => <Moment at={at} />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: ({ id, operator, blocked }) => (
                    <Actions>
                      <Button look="plain" onClick={() => patch(id, { operator: !operator })}>
                        {operator ? "Make no operator" : "Make operator"}
                      </Button>
                      <Button look="plain" onClick={() => patch(id, { blocked: !blocked })}>
                        {blocked ? "Unblock" : "Block"}
                      </Button>
                    </Actions>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  );
}
