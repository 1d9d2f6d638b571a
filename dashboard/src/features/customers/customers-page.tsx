import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { count, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Name } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { type Customer, customerPagesQuery } from "./api.ts";
import { CustomerForm } from "./customer-form.tsx";
import { CustomerStatus, planText } from "./customer-status.tsx";

const columns = [
  {
    head: "Name",
    phone: "title" as const,
    cell: ({ id, name, external_id: externalId }: Customer) => (
      <>
        <Link to="/customers/$id" params={{ id }}>
          <Name>{name}</Name>
        </Link>
        {name === externalId ? null : <span className={style.under}>{externalId}</span>}
      </>
    ),
  },
  {
    head: "Used",
    phone: "figure" as const,
    cell: ({ name, used, limit }: Customer) =>
      limit === null ? (
        usd(used)
      ) : (
        <>
          <div>
            {usd(used)} of {usd(limit)}
          </div>
          <Bar label={name} share={limit === 0 ? 1 : used / limit} />
        </>
      ),
  },
  {
    head: "Requests",
    number: true,
    wide: true,
    cell: ({ usage: { requests } }: Customer) => count(requests),
  },
  { head: "Your cost", number: true, cell: ({ usage: { cost } }: Customer) => usd(cost) },
  { head: "Their price", number: true, cell: ({ usage: { price } }: Customer) => usd(price) },
  { head: "Margin", number: true, cell: ({ usage: { margin } }: Customer) => usd(margin) },
  {
    head: "Plan",
    phone: "when" as const,
    cell: (customer: Customer) => planText(customer),
  },
  {
    head: "State",
    phone: "state" as const,
    cell: ({ status }: Customer) => <CustomerStatus status={status} />,
  },
];

/** End customers: what each used in its period, what it cost, and what is left of its plan. */
export function CustomersPage() {
  const mayWrite = useScope("write:llm-keys");
  const queries = useQueryClient();
  const customers = useInfiniteQuery(customerPagesQuery);
  const [isNew, setNew] = useState(false);
  const create = mayWrite ? <Button onClick={() => setNew(true)}>Create customer</Button> : null;
  return (
    <>
      <PageHead title="Customers">{create}</PageHead>
      <Card flush>
        <LoadedPages query={customers} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={create}>
                No customer yet. A customer is an end user of your own service: its plan limits what
                its requests may cost, and a markup makes the price that it pays.
              </Empty>
            ) : (
              <Table rows={rows} rowKey={({ id }) => id} caption="Customers" columns={columns} />
            )
          }
        </LoadedPages>
      </Card>
      <Modal title="Create customer" open={isNew} onClose={() => setNew(false)}>
        <CustomerForm
          onDone={() => {
            setNew(false);
            void queries.invalidateQueries({ queryKey: ["customers"] });
          }}
        />
      </Modal>
    </>
  );
}
