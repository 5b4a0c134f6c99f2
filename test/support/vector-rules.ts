export const rules: Record<string,string> = {}
