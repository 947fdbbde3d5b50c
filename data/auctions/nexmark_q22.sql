-- Every bid with the three directories of its URL; null where it has fewer.
-- NEXMark, Query 22, as nexmark/nexmark puts it for Flink.
-- Nothing is kept, and closed auctions and bidders (bid.auction, bid.bidder) go on.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, price, channel,
       get(split(url, '/'), 3) AS dir1, get(split(url, '/'), 4) AS dir2, get(split(url, '/'), 5) AS dir3
FROM bid;
