import { createFile, deleteFile, fileContent, getFile, listFiles } from "./files.ts";
import { addUploadPart, cancelUpload, completeUpload, createUpload } from "./uploads.ts";

/** Files, and uploads in parts. */
export const fileEndpoints = [
  createFile,
  listFiles,
  getFile,
  fileContent,
  deleteFile,
  createUpload,
  addUploadPart,
  completeUpload,
  cancelUpload,
];
