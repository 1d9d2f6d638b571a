import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Name } from "../../ui/values.tsx";
import { workspacesQuery } from "./api.ts";

/** The name of a workspace, which leads to its page; its id where it is not among the first. */
export function WorkspaceName({ id }: { id: string }) {
  const { data } = useQuery(workspacesQuery(undefined));
  const name = data?.data.find((workspace) => workspace.id === id)?.name;
  return (
    <Link to="/operator" search={{ group: "workspaces", id }}>
      <Name>{name ?? id}</Name>
    </Link>
  );
}
