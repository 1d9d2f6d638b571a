import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Empty, Loaded } from "./loaded.tsx";

/** A query of a list that is read page by page. */
interface PagesQuery {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
}

/** The button that reads the next page of a list, with a note; nothing at the end of the list. */
export function NextPage({
  query,
  label = "Show older",
  note = "There is more.",
}: {
  query: PagesQuery;
  label?: string;
  note?: string;
}) {
  if (!query.hasNextPage) return null;
  return (
    <Empty
      action={
        <Button
          look="plain"
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {label}
        </Button>
      }
    >
      {note}
    </Empty>
  );
}

/** A list that is read page by page: loading, failed, or its rows so far. */
export function LoadedPages<Row>({
  query,
  height,
  children,
}: {
  query: PagesQuery & {
    data: { pages: readonly { data: readonly Row[] }[] } | undefined;
    error: unknown;
    dataUpdatedAt: number;
    refetch: () => unknown;
  };
  height: number;
  children: (rows: readonly Row[]) => ReactNode;
}) {
  const rows = query.data?.pages.flatMap(({ data }) => data);
  return (
    <Loaded query={{ ...query, data: rows }} height={height}>
      {(shown) => (
        <>
          {children(shown)}
          <NextPage query={query} label="Show more" note={`${shown.length} so far.`} />
        </>
      )}
    </Loaded>
  );
}
