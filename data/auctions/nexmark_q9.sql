-- The winning bid of each auction: the highest, of equal ones the first.
-- NEXMark, Query 9, as nexmark/nexmark puts it for Flink.
-- Time (auction.dateTime, bid.dateTime) bounds the join, or closed auctions (bid.auction) where they come sooner. With
-- unique ids (auction.id) it closes an auction as soon as it has expired, however long it was open.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra,
       auction, bidder, price, bid_dateTime, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
         ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
)
WHERE rownum <= 1;
