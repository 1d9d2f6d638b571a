import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { resumePage, submitResume } from "./resume-page.ts";
import { changeRun, createRun, getRun, listRuns } from "./runs.ts";

/** Runs; a part of the table in `endpoints/index.ts`. */
export const runEndpoints: readonly Endpoint<Dependencies>[] = [
  createRun,
  listRuns,
  getRun,
  changeRun,
  resumePage,
  submitResume,
];
