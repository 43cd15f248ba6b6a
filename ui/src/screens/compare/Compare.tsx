import { Page } from "@/kit/Page";

export default function Compare() {
  return <Page title="Compare">{null}</Page>;
}
