import { Page } from "@/kit/Page";

export default function Dataset() {
  return <Page title="Dataset">{null}</Page>;
}
