import { bannedCalls } from "./banned-calls.ts";
import { decisionHeads } from "./decision-heads.ts";
import { dialectQuestions } from "./dialect-questions.ts";
import { docComments } from "./doc-comments.ts";
import { documentPaths } from "./document-paths.ts";
import { endpointTable, testedEndpoints } from "./endpoint-table.ts";
import { fileNames } from "./file-names.ts";
import { ideasAFile } from "./ideas-a-file.ts";
import { importCycles, roomCycles } from "./import-cycles.ts";
import { importExtensions } from "./import-extensions.ts";
import { layerImports } from "./layer-imports.ts";
import { noAny } from "./no-any.ts";
import { noDefaultExports } from "./no-default-exports.ts";
import { orphanFiles } from "./orphan-files.ts";
import type { Rule } from "./rule.ts";
import { sameDialectFiles } from "./same-dialect-files.ts";
import { separateNeighbours } from "./separate-neighbours.ts";
import { fileSize, folderSize, functionLength, lineLength } from "./sizes.ts";
import { wireFields } from "./wire-fields.ts";
import { oneName, plainEnglish, plainMessages, wording } from "./wording.ts";

/** The rules of the house, from the outside in. */
export const rules: readonly Rule[] = [
  layerImports,
  separateNeighbours,
  importCycles,
  roomCycles,
  importExtensions,
  noDefaultExports,
  bannedCalls,
  noAny,
  fileNames,
  ideasAFile,
  sameDialectFiles,
  dialectQuestions,
  wireFields,
  orphanFiles,
  endpointTable,
  testedEndpoints,
  lineLength,
  fileSize,
  folderSize,
  functionLength,
  docComments,
  wording,
  plainEnglish,
  plainMessages,
  oneName,
  documentPaths,
  decisionHeads,
];
