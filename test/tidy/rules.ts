import { bannedCalls } from "./banned-calls.ts";
import { docComments } from "./doc-comments.ts";
import { documentPaths } from "./document-paths.ts";
import { endpointTable, testedEndpoints } from "./endpoint-table.ts";
import { fileNames } from "./file-names.ts";
import { importCycles } from "./import-cycles.ts";
import { importExtensions } from "./import-extensions.ts";
import { layerImports } from "./layer-imports.ts";
import { noAny } from "./no-any.ts";
import { noDefaultExports } from "./no-default-exports.ts";
import { orphanFiles } from "./orphan-files.ts";
import type { Rule } from "./rule.ts";
import { sameDialectFiles } from "./same-dialect-files.ts";
import { separateNeighbours } from "./separate-neighbours.ts";
import { fileSize, functionLength, lineLength } from "./sizes.ts";
import { wording } from "./wording.ts";

/** The rules of the house, from the outside in. */
export const rules: readonly Rule[] = [
  layerImports,
  separateNeighbours,
  importCycles,
  importExtensions,
  noDefaultExports,
  bannedCalls,
  noAny,
  fileNames,
  sameDialectFiles,
  orphanFiles,
  endpointTable,
  testedEndpoints,
  lineLength,
  fileSize,
  functionLength,
  docComments,
  wording,
  documentPaths,
];
