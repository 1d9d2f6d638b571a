/** The engines that the gateway runs on. */
export type StorageKind = "sqlite" | "postgres";
