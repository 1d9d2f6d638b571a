/**
 * Settles records and archives them once; the test kills it while the archive withholds its answer.
 * Arguments: the URLs of the database and of the archive, and the number of records.
 */
import { openArchived } from "./archive.ts";
import { recordInSeries } from "./generation-records.ts";

const [url = "", archiveUrl = "", count = "0"] = process.argv.slice(2);
const { archive, settle } = await openArchived({ url, archiveUrl });
await settle(...Array.from({ length: Number(count) }, (_, index) => recordInSeries(index)));
await archive.archiver.round();
