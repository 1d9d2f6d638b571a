import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { addCustomerCredits, listCustomerCredits } from "./customer-credits.ts";
import { createCustomerKey, listCustomerKeys } from "./customer-keys.ts";
import {
  changeCustomer,
  createCustomer,
  deleteCustomer,
  getCustomer,
  listCustomers,
} from "./customers.ts";
import { balancePage, createBalanceLink } from "./balance-page.ts";
import { listMeterEvents } from "./meter-events.ts";
import { customerStatement } from "./statement.ts";

/** End customers; a part of the table in `endpoints/index.ts`. */
export const customerEndpoints: readonly Endpoint<Dependencies>[] = [
  createCustomer,
  listCustomers,
  getCustomer,
  changeCustomer,
  deleteCustomer,
  createCustomerKey,
  listCustomerKeys,
  addCustomerCredits,
  listCustomerCredits,
  customerStatement,
  listMeterEvents,
  createBalanceLink,
  balancePage,
];
