import type { ComponentProps, ReactNode } from "react";
import { Card } from "../../ui/card.tsx";
import { Input } from "../../ui/fields.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { ChangeProblem } from "./changes.tsx";

/** A card with the rows that match a search, and with what is asked before one is changed. */
export function SearchedTable<Row extends { id: string }>({
  title,
  search,
  onSearch,
  query,
  problem,
  columns,
  children,
}: {
  title: string;
  search: string | undefined;
  onSearch: (text: string) => void;
  query: ComponentProps<typeof Loaded<{ data: readonly Row[] }>>["query"];
  /** Why the last change of a row was refused; null where none was. */
  problem: unknown;
  columns: readonly Column<Row>[];
  children: ReactNode;
}) {
  const what = title.toLowerCase();
  const label = `Search ${what}`;
  return (
    <Card
      title={title}
      actions={
        <Input
          type="search"
          aria-label={label}
          placeholder={label}
          defaultValue={search}
          onKeyDown={(event) => {
            if (event.key === "Enter") onSearch(event.currentTarget.value.trim());
          }}
        />
      }
      flush
    >
      <ChangeProblem error={problem} />
      <Loaded query={query} height={360}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>Nothing matches.</Empty>
          ) : (
            <Table rows={data} rowKey={({ id }) => id} caption={`All ${what}`} columns={columns} />
          )
        }
      </Loaded>
      {children}
    </Card>
  );
}
