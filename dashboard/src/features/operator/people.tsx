import { zoneName } from "../../lib/time.ts";
import type { Bodies } from "../../lib/api-types.ts";
import { sending } from "../../lib/api.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Actions, Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { type Person, peopleQuery } from "./api.ts";
import { useChange } from "./changes.tsx";
import { SearchedTable } from "./searched-table.tsx";

/** Changes that are confirmed first, with their effect. */
const acts = {
  promote: {
    title: "Make an operator of",
    action: "Make operator",
    effect: "Operators see and change every workspace, its people and the configuration.",
    body: { operator: true },
  },
  demote: {
    title: "Take an operator's rights from",
    action: "Remove as operator",
    effect: "The person keeps the account and the workspaces.",
    body: { operator: false },
  },
  block: {
    title: "Block",
    action: "Block person",
    effect:
      "The person, and the keys of their personal workspace, are refused at once, until unblocked.",
    body: { blocked: true },
  },
} as const;

/** A person, and the change to confirm. */
interface Asked {
  person: Person;
  act: keyof typeof acts;
}

/** All people with an account: operators among them, and those who are blocked. */
export function People({
  search,
  onSearch,
}: {
  search: string | undefined;
  onSearch: (text: string) => void;
}) {
  const people = useQuery(peopleQuery(search));
  const changing = useChange("Person changed");
  const [asked, setAsked] = useState<Asked>();
  const patch = (id: string, body: Bodies["PATCH /admin/users/{id}"]): void =>
    changing.mutate(
      { path: `/admin/users/${id}`, ...sending("PATCH /admin/users/{id}", body) },
      { onSuccess: () => setAsked(undefined) },
    );
  return (
    <SearchedTable
      title="People"
      search={search}
      onSearch={onSearch}
      query={people}
      problem={asked === undefined ? changing.error : null}
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
          head: `Last signed in, ${zoneName()}`,
          offTablet: true,
          phone: "when",
          cell: ({ last_signed_in_at: at }) => <Moment at={at} />,
        },
        {
          head: "Actions",
          phone: "actions",
          cell: (person) => (
            <Actions>
              <Button
                look="plain"
                onClick={() => setAsked({ person, act: person.operator ? "demote" : "promote" })}
              >
                {person.operator ? "Remove as operator" : "Make operator"}
              </Button>
              <Button
                look="plain"
                onClick={() =>
                  person.blocked
                    ? patch(person.id, { blocked: false })
                    : setAsked({ person, act: "block" })
                }
              >
                {person.blocked ? "Unblock" : "Block"}
              </Button>
            </Actions>
          ),
        },
      ]}
    >
      {asked === undefined ? null : (
        <Confirm
          title={`${acts[asked.act].title} ${asked.person.name}`}
          open
          onClose={() => setAsked(undefined)}
          action={acts[asked.act].action}
          work={changing}
          onConfirm={() => patch(asked.person.id, acts[asked.act].body)}
        >
          <p>{acts[asked.act].effect}</p>
        </Confirm>
      )}
    </SearchedTable>
  );
}
